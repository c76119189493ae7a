"""The session of onnxruntime, and ONNX's interface of backends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import DIGITS, ENVIRONMENT, RESIDUAL

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

import hoist  # noqa: E402
from hoist import onnxruntime as ort  # noqa: E402


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hoist" / "sessions"


def model(nodes: list[object], inputs: list[object], outputs: list[object], **graph: object) -> bytes:
    made = helper.make_model(helper.make_graph(nodes, "made", inputs, outputs, **graph), ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15)], producer_name="test")
    helper.set_model_props(made, {"labels": "a,b"})
    return bytes(made.SerializeToString())


def tensor(name: str, shape: list[object] | None, kind: int = TensorProto.FLOAT) -> object:
    return helper.make_tensor_value_info(name, kind, shape)


def doubling() -> bytes:
    return model([helper.make_node("Add", ["x", "x"], ["y"])], [tensor("x", ["rows", 3])], [tensor("y", ["rows", 3])])


def test_any_size_runs_and_compiles_once(cache: Path) -> None:
    session = ort.InferenceSession(doubling())
    for rows in (1, 4, 1, 4):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        [y] = session.run(None, {"x": x})
        assert y.dtype == np.float32 and np.array_equal(y, 2 * x)
    bundles = sorted(cache.iterdir())
    assert len(bundles) == 2
    written = [each.stat().st_mtime_ns for each in bundles]
    again = ort.InferenceSession(doubling())
    assert np.array_equal(again.run(["y"], {"x": np.ones((4, 3), np.float32)})[0], np.full((4, 3), 2, np.float32))
    assert [each.stat().st_mtime_ns for each in sorted(cache.iterdir())] == written


def test_describes_the_model() -> None:
    session = ort.InferenceSession(doubling())
    [x] = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["rows", 3])
    assert [(y.name, y.shape) for y in session.get_outputs()] == [("y", ["rows", 3])]
    about = session.get_modelmeta()
    assert about.producer_name == "test" and about.custom_metadata_map == {"labels": "a,b"}
    assert session.get_providers() == ort.get_available_providers() == ["CPUExecutionProvider"]


def test_gives_what_the_bundle_gives() -> None:
    image = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    [expected] = hoist.load(RESIDUAL).compile("r.hoist", target="native", dim={"N": 2}).run(image=image)
    [logits] = ort.InferenceSession(str(RESIDUAL)).run(["logits"], {"image": image})
    assert logits.tobytes() == expected.tobytes()


def test_an_input_that_decides_a_shape_becomes_a_value() -> None:
    session = ort.InferenceSession(model([helper.make_node("Reshape", ["x", "shape"], ["y"])],
                                         [tensor("x", [2, 6]), tensor("shape", [2], TensorProto.INT64)],
                                         [tensor("y", ["a", "b"])]))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    for shape in ([3, 4], [6, 2], [3, 4]):
        [y] = session.run(None, {"x": x, "shape": np.array(shape)})
        assert np.array_equal(y, x.reshape(shape))


def test_one_name_for_two_sizes() -> None:
    session = ort.InferenceSession(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["?", "?"])],
                                         [tensor("y", ["?", "?"])]))
    assert session.run(None, {"x": np.ones((2, 5), np.float32)})[0].shape == (2, 5)


def test_sequences_are_lists() -> None:
    held = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    result = helper.make_tensor_sequence_value_info("r", TensorProto.FLOAT, None)
    session = ort.InferenceSession(model([helper.make_node("SequenceInsert", ["s", "x"], ["r"])],
                                         [held, tensor("x", [2])], [result]))
    one, two = np.ones((1, 3), np.float32), np.full(2, 2, np.float32)
    [members] = session.run(None, {"s": [one], "x": two})
    assert [member.tolist() for member in members] == [one.tolist(), two.tolist()]


@pytest.mark.parametrize("feeds, message", [
    ({}, "Required inputs"),
    ({"x": np.ones((1, 3), np.float64)}, "Unexpected input data type"),
    ({"x": np.ones((1, 4), np.float32)}, "Got invalid dimensions"),
    ({"x": np.ones(3, np.float32)}, "Invalid rank"),
    ({"x": np.ones((1, 3), np.float32), "z": np.ones(1)}, "Invalid input name"),
])
def test_wrong_inputs(feeds: dict[str, object], message: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=message):
        ort.InferenceSession(doubling()).run(None, feeds)


def test_wrong_models(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ort.NoSuchFile):
        ort.InferenceSession("missing.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(tmp_path / "text.onnx")
    unknown = model([helper.make_node("Unknown", ["x"], ["y"], domain="nowhere")], [tensor("x", [1])], [tensor("y", [1])])
    with pytest.raises(ort.NotImplemented, match="Unknown"):
        ort.InferenceSession(unknown)
    with pytest.raises(ort.InvalidArgument, match="Invalid output name"):
        ort.InferenceSession(doubling()).run(["q"], {"x": np.ones((1, 3), np.float32)})
    assert not list(cache.glob("*")) if cache.exists() else True


def test_bindings() -> None:
    session = ort.InferenceSession(doubling())
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ones((1, 3), np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[2, 2, 2]]
    held = ort.OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32)
    binding.bind_ortvalue_output("y", held)
    session.run_with_iobinding(binding)
    assert held.numpy().tolist() == [[2, 2, 2]] and held.data_type() == "tensor(float)"


def test_threads_share_a_session(cache: Path) -> None:
    session = ort.InferenceSession(doubling())
    wrong = []

    def run(rows: int) -> None:
        x = np.full((rows, 3), rows, np.float32)
        if not np.array_equal(session.run(None, {"x": x})[0], 2 * x):
            wrong.append(rows)

    threads = [threading.Thread(target=run, args=(1 + i % 3,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(list(cache.iterdir())) == 3


def test_bundles_of_other_formats_are_compiled_again(cache: Path) -> None:
    rows = np.ones((2, 3), np.float32)
    ort.InferenceSession(doubling()).run(None, {"x": rows})
    [folder] = cache.iterdir()
    written = (folder / "plan.bin").read_bytes()
    (folder / "plan.bin").write_bytes(written[:8] + bytes([written[8] - 1]) + written[9:])
    with pytest.raises(hoist.InputError):
        hoist.load(folder).run(rows)
    assert np.array_equal(ort.InferenceSession(doubling()).run(None, {"x": rows})[0], 2 * rows)
    assert (folder / "plan.bin").read_bytes() == written


def test_takes_the_place_of_onnxruntime() -> None:
    program = (f"import hoist.onnxruntime; hoist.onnxruntime.install()\n"
               f"import onnxruntime, numpy\n"
               f"from onnxruntime.capi.onnxruntime_pybind11_state import NoSuchFile\n"
               f"session = onnxruntime.InferenceSession({str(DIGITS)!r}, onnxruntime.SessionOptions(), ['CPUExecutionProvider'])\n"
               f"print(session.run(None, {{'image': numpy.zeros((1, 1, 8, 8), numpy.float32)}})[0].shape)\n"
               f"try: onnxruntime.InferenceSession('missing.onnx')\n"
               f"except NoSuchFile as problem: print(problem)\n")
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["(1, 10)", "missing.onnx does not exist"], ran.stderr


def test_a_refused_model_falls_back_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def run(self, *_: object) -> list[str]:
            return ["of the other engine"]

    fake = type("fake", (), {"InferenceSession": Other})
    monkeypatch.setattr(sys.modules["hoist.onnxruntime"], "original", lambda: fake)
    unknown = model([helper.make_node("Unknown", ["x"], ["y"], domain="nowhere")], [tensor("x", [1])], [tensor("y", [1])])
    with pytest.warns(RuntimeWarning, match="Unknown"):
        session = ort.InferenceSession(unknown, fallback=True)
    assert session.run(None, {"x": np.ones(1, np.float32)}) == ["of the other engine"]
    monkeypatch.setattr(sys.modules["hoist.onnxruntime"], "original", lambda: None)
    with pytest.raises(ort.NotImplemented, match="no onnxruntime is installed"):
        ort.InferenceSession(unknown, fallback=True)


def test_the_backend_runs_nodes() -> None:
    from hoist import backend
    x = np.array([-1, 2], np.float32)
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])[0].tolist() == [0, 2]
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    prepared = backend.prepare(onnx.load_model_from_string(doubling()))
    assert prepared.run([np.ones((1, 3), np.float32)])[0].tolist() == [[2, 2, 2]]
