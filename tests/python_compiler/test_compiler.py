"""A model from its file to a bundle that runs."""

from __future__ import annotations

import dataclasses
import html
import inspect
import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DIGITS, ENVIRONMENT, MODELS, RESIDUAL, SOURCE

import hoist
from hoist import _option_types


@pytest.fixture(scope="module")
def model() -> hoist.Model:
    return hoist.load(RESIDUAL)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    with np.load(MODELS / "digits_residual_test.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def bundle(model: hoist.Model, tmp_path_factory: pytest.TempPathFactory) -> hoist.Bundle:
    return model.compile(tmp_path_factory.mktemp("bundles") / "digits.hoist", target="native")


class _Balanced(HTMLParser):
    """Every HTML element that begins also ends."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def shown(thing: Any) -> str:
    """The text of a notebook's output."""
    page = thing._repr_html_()
    parser = _Balanced()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return html.unescape(re.sub("<[^>]*>", " ", page))


def test_a_gradient_is_the_slope_of_the_loss(model: hoist.Model, bundle: hoist.Bundle, data: dict[str, Any]) -> None:
    slopes = model.gradient("sum(logits)", wrt="inputs", output="slopes.hoist", target="native")
    image = data["image"][:1].astype(np.float32)
    loss, gradient = slopes.run(image=image)
    step = np.random.default_rng(1).standard_normal(image.shape).astype(np.float32) * np.float32(1e-3)
    here, there, back = (bundle.run(image=image + sign * step)[0].sum(dtype=np.float64) for sign in (0, 1, -1))
    assert float(loss) == pytest.approx(here, rel=1e-4, abs=1e-4)
    assert float((gradient * step).sum()) == pytest.approx((there - back) / 2, rel=2e-2)
    with pytest.raises(hoist.Error, match="no value of the model"):
        model.gradient("nothing", output="none.hoist")
    learning = model.gradient(loss="cross-entropy", wrt="classifier/bias", output="learning.hoist", target="native")
    logits = bundle.run(image=image)[0]
    loss, gradient = learning.run(image=image, labels=np.array([3]))
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert float(loss) == pytest.approx(-np.log(shares[0, 3]), rel=1e-4, abs=1e-5)
    assert gradient == pytest.approx(shares[0] - np.eye(10)[3], rel=1e-3, abs=1e-5)


def test_a_training_writes_a_model_with_other_weights(tmp_path: Path) -> None:
    # Two classes that one weight separates.
    generator = np.random.default_rng(1)
    image = generator.standard_normal((96, 1, 8, 8)).astype(np.float32)
    data = {"image": image, "labels": (image[:, 0, 0, 0] > 0).astype(np.int64)}
    model = hoist.load(DIGITS, target="native")
    done = model.train(data, tmp_path / "trained.onnx", epochs=6, batch=16, validation=0.25, initialise="he",
                       learning_rate=0.01, optimiser="shampoo", auto=["lr", "label-smoothing"])
    assert done.model.path == tmp_path / "trained.onnx" and done.steps == 6 * 4
    assert [each.epoch for each in done.epochs] == [1, 2, 3, 4, 5, 6] and done.epochs[5].loss < done.epochs[0].loss
    assert set(done.epochs[0].found) == {"lr", "label-smoothing"} and not done.ended
    assert done.best is not None and done.best.right is not None and done.best.right > 0.5
    assert "validation loss" in str(done) and "label-smoothing" in shown(done)
    with pytest.raises(hoist.Error, match="is no hyper-parameter"):
        model.train(data, tmp_path / "none.onnx", auto="depth", validation=data)


def test_check(model: hoist.Model, tmp_path: Path) -> None:
    check = model.check()
    assert check and check.supported and not check.problems
    assert ("Conv", 10) in [(use.name, use.count) for use in check.operators]
    assert check.summary is not None and check.summary.outputs[0].shape == (1, 10)
    assert "Conv" in shown(check) and "can be compiled" in str(check)
    # An unsupported model is a normal answer; a file that is not a model is an error.
    unsupported = SOURCE / "tests" / "fuzz" / "corpus" / "onnx_model"
    answers = [hoist.load(path).check() for path in sorted(unsupported.glob("*.onnx"))[:3]]
    assert all(answer.operators for answer in answers)
    with pytest.raises(hoist.InputError, match="is not an ONNX model"):
        hoist.load(b"no model").check()
    with pytest.raises(hoist.InputError, match="is not a file"):
        hoist.load(tmp_path / "missing.onnx")


def test_bytes_and_protos_are_models(model: hoist.Model) -> None:
    content = RESIDUAL.read_bytes()

    class Graph:
        name = "my/net"

    class Proto:
        graph = Graph()

        def SerializeToString(self) -> bytes:  # noqa: N802
            return content

    for source, name in ((content, "model"), (bytearray(content), "model"), (Proto(), "my_net")):
        assert hoist.load(source).summary == dataclasses.replace(model.summary, model=name)


def test_what_a_layer_is_at_every_stage(model: hoist.Model, bundle: hoist.Bundle) -> None:
    layer = model.layers["conv1"]
    assert layer is not None and layer.operator == "Conv" and model.layers[0].name == "conv1"
    assert [stage.stage for stage in layer.stages()] == ["graph", "high", "high", "low", "halide", "opencl"]
    assert "|> map3d (map relu)" in layer.high and "map vec" in layer.low and "__global" in layer.opencl
    assert "f32" in layer.stages("high", types=True)[0].text
    assert "conv1 (Conv)" in shown(layer) and "relu1" in shown(model.layers)
    with pytest.raises(hoist.UsageError, match="stage hihg is not there|stage hihg: is not there"):
        layer.stages("hihg")
    with pytest.raises(KeyError):
        model.layers["no such layer"]
    # The bundle has the same stages.
    other = hoist.load(RESIDUAL).layers["conv1"]
    assert other == layer
    assert [stage.stage for stage in bundle.layers["conv1"].stages()] == ["graph", "low", "native"]
    with pytest.raises(hoist.InputError, match="is not stored in a bundle"):
        bundle.layers["conv1"].high


def test_derivations(model: hoist.Model, bundle: hoist.Bundle) -> None:
    derivation = model.layers["conv1"].explain()
    [proof] = derivation.kernels
    assert proof.layers == ("conv1", "normalize1", "relu1")
    step = proof.steps[0]
    assert (step.rule, step.rule_class, step.absorbed) == ("batch-norm-folding", "rounding", ("normalize1",))
    assert step.before and step.after and not step.term
    assert model.layers["conv1"].explain(terms=True).kernels[0].steps[-1].term == proof.term
    assert "batch-norm-folding" in shown(derivation) and "batch-norm-folding" in str(derivation)
    # A bundle replays its stored derivation.
    steps = [each.rule for each in bundle.layers["conv1"].explain().kernels[0].steps]
    assert steps[:3] == [each.rule for each in proof.steps][:3]


def test_programs_and_kernels(model: hoist.Model) -> None:
    assert str(model.program).startswith("program %digits_residual")
    assert "BatchNormalization" in model.program.text and "BatchNormalization" not in model.rewritten.text
    assert len(model.kernels) == model.summary.kernel_count
    assert "BatchNormalization" in shown(model.program) and "conv1" in shown(model.kernels[1])


def test_names_are_text_and_nothing_else() -> None:
    program = hoist.Program("<script>alert(1)</script>")
    layer = hoist.Kernel("<b>", ("<i>",), 1, "\"<'&")
    for thing in (program, layer):
        assert "<script" not in thing._repr_html_() and "<i>" not in thing._repr_html_()
    assert "<script>alert(1)</script>" in shown(program)


def test_compiling_running_and_evaluating(bundle: hoist.Bundle, data: dict[str, Any]) -> None:
    assert bundle.compilation is not None and bundle.compilation["check"]["done"]
    [logits] = bundle.run(image=data["image"][:1])
    assert logits.shape == (1, 10)

    class Tensor:  # of another library
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **_: Any) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    assert np.array_equal(bundle.run(image=Tensor(data["image"][:1].copy()))[0], logits)
    from_file = bundle.evaluate(MODELS / "digits_residual_test.npz")
    assert (from_file.correct, from_file.total, from_file.top5) == (496, 500, 1.0)
    assert bundle.evaluate({"image": Tensor(data["image"].copy()), "labels": data["labels"]}).correct == 496
    assert "496 of 500" in shown(from_file)
    itself = bundle.compare(bundle, {"image": data["image"][:3]})
    assert (itself["total"], itself["outputs"][0]["agreement"], itself["outputs"][0]["sqnr"]) == (3, 1.0, None)
    assert all(finding.passed for finding in bundle.verify())
    assert [finding.subject for finding in bundle.verify(derivation=True, model=RESIDUAL)][0] == "derivation, its start"
    assert bundle.bench(seconds=0.05)["runs"] > 0
    assert bundle.summary.layer_count == 36
    with bundle:
        assert bundle.opened.device.startswith("native")
    assert bundle.run(image=data["image"][:1])[0].shape == (1, 10), "it opens again"


def test_a_damaged_bundle_does_not_pass(bundle: hoist.Bundle, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(bundle.folder, tmp_path / "copy.hoist")
    weights = copy / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(hoist.Error, match="weights.bin"):
        hoist.open(copy).verify()
    with pytest.raises(hoist.InputError):
        hoist.open(tmp_path)


def test_sizes_and_names_without_a_place(tmp_path: Path) -> None:
    model = hoist.load(DIGITS, dim={"N": [1, 4]})
    bundle = model.compile(target="native", no_check=True)
    assert bundle.folder == Path("digits_fully_connected.hoist") and (tmp_path / bundle.folder).is_dir()
    name = bundle.summary.inputs[0].name
    shape = bundle.summary.inputs[0].shape
    for count in (1, 4):
        assert bundle.run({name: np.zeros((count, *shape[1:]), np.float32)})[0].shape[0] == count


def test_errors_name_the_place_and_the_way_out(model: hoist.Model, bundle: hoist.Bundle, tmp_path: Path) -> None:
    with pytest.raises(hoist.InputError) as raised:
        model.compile(bundle.folder)
    assert (raised.value.where, raised.value.what) == (str(bundle.folder), "exists") and "force" in raised.value.hint
    with pytest.raises(hoist.DeviceError, match="no-such-device"):
        model.compile(tmp_path / "x.hoist", device="no-such-device")
    with pytest.raises(hoist.UsageError, match="conv"):
        hoist.load(RESIDUAL, pass_={"convolution": "winogard"}).layers
    with pytest.raises(hoist.UsageError, match="requires --budget"):
        model.compile(tmp_path / "x.hoist", best_effort=True)
    with pytest.raises(TypeError, match="unknown option 'optimise'"):
        model.compile(tmp_path / "x.hoist", optimise=3)  # type: ignore[call-arg]
    with pytest.raises(hoist.UsageError, match="no input is called picture"):
        bundle.run(picture=np.zeros((1, 1, 8, 8), np.float32))
    with pytest.raises(hoist.InputError) as several:
        bundle.evaluate({"labels": np.zeros(3, np.int64)})
    assert all(isinstance(problem, hoist.Problem) for problem in several.value.problems)
    assert issubclass(hoist.UsageError, ValueError) and issubclass(hoist.DeviceError, RuntimeError)


def message(**fields: bytes | int) -> bytes:
    """A message of Protocol Buffers with the fields f1, f2, ...: bytes, or a number below 128."""
    out = b""
    for name, value in fields.items():
        number, of_bytes = int(name[1:]), isinstance(value, bytes)
        key = number << 3 | (2 if of_bytes else 0)
        out += bytes([key] if key < 128 else [key & 127 | 128, key >> 7])
        out += bytes([len(value)]) + value if isinstance(value, bytes) else bytes([value])
    return out


def test_data_that_a_run_refuses_are_bad_input(tmp_path: Path) -> None:
    def array(name: bytes, element: int) -> bytes:
        return message(f1=name, f2=message(f1=message(f1=element, f2=message(f1=message(f1=2)))))

    cast = message(f1=b"x", f2=b"y", f4=b"Cast", f5=message(f1=b"to", f3=1, f20=2))  # from a string to f32
    graph = message(f1=cast, f2=b"numbers", f11=array(b"x", 8), f12=array(b"y", 1))
    model = tmp_path / "numbers.onnx"
    model.write_bytes(message(f1=8, f7=graph, f8=message(f2=21)))
    bundle = hoist.load(model).compile(tmp_path / "numbers.hoist", target="native")
    assert bundle.run(x=["1.5", "-2"])[0].tolist() == [1.5, -2]
    with pytest.raises(hoist.InputError, match="two"):
        bundle.run(x=["1.5", "two"])


def test_notes_go_to_the_logger(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.INFO, logger="hoist"):
        hoist.load(DIGITS).check()
    assert "dimension N" in caplog.text
    assert capfd.readouterr() == ("", ""), "nothing is printed"


def test_any_command() -> None:
    answer = hoist.command("check", DIGITS, "--json", "-")
    assert answer.exit_code == 0 and answer.json["supported"] and "can be compiled" in answer.text
    assert hoist.load(hoist.command("export", DIGITS, "-o", "-").file).check()
    with pytest.raises(hoist.UsageError, match="is not a command .did you mean check"):
        hoist.command("chek")
    assert {"Conv", "Relu"} <= {row["name"] for row in hoist.operators()}
    assert "map-fusion" in [row["name"] for row in hoist.rules()]
    assert hoist.devices()[0]["index"] == 0


def test_options_are_those_of_the_program() -> None:
    script = SOURCE / "tools" / "python" / "option_types.py"
    manual = json.dumps(hoist.command("help", "--json", "-").json)
    made = subprocess.run([sys.executable, script], input=manual, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert Path(_option_types.__file__).read_text(encoding="utf-8") == made, f"{script} has the command that renews it"


def test_old_names_of_options_are_accepted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hoist"):
        old = hoist.load(RESIDUAL, fuse="none").kernels  # type: ignore[call-arg]
    assert old == hoist.load(RESIDUAL, pass_={"fusion": "none"}).kernels
    assert "--fuse is an old name: write --pass fusion=none" in caplog.text
    with pytest.raises(TypeError, match="unknown option 'fuze'"):
        hoist.load(RESIDUAL, fuze="none")  # type: ignore[call-arg]


def test_everything_has_a_word_of_explanation() -> None:
    for name in hoist.__all__:
        thing = getattr(hoist, name)
        assert not callable(thing) or inspect.getdoc(thing), name
        if not inspect.isclass(thing):
            continue
        for member, value in vars(thing).items():
            if inspect.isfunction(value) and not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_other_threads_work_meanwhile(tmp_path: Path) -> None:
    count, done = 0, threading.Event()

    def work() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    begin = time.monotonic()
    hoist.load(RESIDUAL).compile(tmp_path / "a.hoist", target="native", no_check=True)
    seconds = time.monotonic() - begin
    done.set()
    thread.join()
    assert count > 100 * min(seconds, 1), f"{count} turns in {seconds} s"


def test_calls_from_several_threads_wait_for_each_other(tmp_path: Path) -> None:
    models = [hoist.load(DIGITS) for _ in range(3)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda model=model: found.append(model.summary)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 and found[0] == found[1] == found[2]


_INTERRUPTED = """
import hoist, signal, sys, threading, os, time
model = hoist.load({model!r})
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    model.choose("sqnr=60dB", calibrate={data!r})
    print("done")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin)
print(model.check().supported)
"""


def test_ctrl_c_ends_a_call_and_nothing_else(tmp_path: Path) -> None:
    program = _INTERRUPTED.format(model=str(RESIDUAL), data=str(MODELS / "digits_residual_calibration.npz"))
    ran = subprocess.run([sys.executable, "-c", program], env={**ENVIRONMENT, "TMPDIR": str(tmp_path)}, text=True,
                         capture_output=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    [what, supported] = ran.stdout.splitlines()
    assert what.startswith("interrupted") and 0.9 < float(what.split()[1]) < 10, "soon after the signal"
    assert supported == "True", "the next call works"
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_ctrl_c_leaves_no_part_of_a_bundle(tmp_path: Path) -> None:
    def interrupt(what: str) -> None:
        if "comparing kernels" in what:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.5)  # gives the waiting thread time to see it

    hoist.set_progress(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            hoist.load(DIGITS).compile(tmp_path / "a.hoist", target="native")
    finally:
        hoist.set_progress(None)
    assert not list(tmp_path.iterdir())


def test_a_signal_s_own_handler_is_called() -> None:
    class Heard(Exception):
        pass

    def handler(*_: Any) -> None:
        raise Heard

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Heard):
            hoist.load(RESIDUAL).choose("sqnr=60dB", calibrate=MODELS / "digits_residual_calibration.npz")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_candidates_of_a_search_are_measured_by_another_process(model: hoist.Model, tmp_path: Path) -> None:
    # The program is this Python interpreter, since the extension is not a program.
    tuned = tmp_path / "kept.tuning"
    model.compile(tmp_path / "tuned.hoist", target="native", tune=10, tuning=tuned)
    assert tuned.stat().st_size > 0
    assert hoist.command("verify", tmp_path / "tuned.hoist").exit_code == 0
