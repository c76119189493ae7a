"""Checks hoist's answers against onnxruntime's. Development only.

    build/compare/bin/python tools/compare/accuracy.py mnist MNIST-8.onnx --pictures t10k-images-idx3-ubyte.gz \\
        --labels t10k-labels-idx1-ubyte.gz
    build/compare/bin/python tools/compare/accuracy.py resnets
    build/compare/bin/python tools/compare/accuracy.py digits

mnist: the share of right answers on a data set, through onnxruntime and through `hoist evaluate`; equal or exit code 1.
resnets: ResNet-18 and ResNet-50 with seeded weights, every output within rtol 1e-3 and atol 1e-4.
digits: the models of models/ on their test data, equal to models/accuracy.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from engines import (ATOL, ROOT, RTOL, WORK, Arrays, Failure, Hoist, OnnxRuntime, complain, cores, difference,
                     random_inputs)

TOPOLOGIES = ROOT / "build" / "compare" / "topologies"


def right_answers(engine: OnnxRuntime, data: Arrays) -> int:
    """The number of samples whose highest score is at their label; sample by sample if the model's batch is one."""
    (value,) = engine.session.get_inputs()
    samples = data[value.name]
    if value.shape[0] == 1:
        scores = np.concatenate([next(iter(engine.run({value.name: sample[None]}).values())) for sample in samples])
    else:
        scores = next(iter(engine.run({value.name: samples}).values()))
    return int((scores.reshape(len(samples), -1).argmax(1) == data["labels"]).sum())


def evaluate(name: str, model: Path, data: Path, options: argparse.Namespace, recorded: int | None = None) -> bool:
    """Prints both engines' counts; True if they are equal to each other and to the recorded count, if there is one."""
    arrays = dict(np.load(data))
    total = len(arrays["labels"])
    expected = right_answers(OnnxRuntime(model, cores()), arrays)
    print(f"{name}: onnxruntime {expected} of {total}", flush=True)
    good = True
    if recorded is not None:
        print(f"{name}: recorded    {recorded} of {total}", flush=True)
        good = recorded == expected
    if options.only_onnxruntime:
        return good
    hoist = Hoist(options.hoist, options.device)
    bundle = WORK / f"{name}.hoist"
    hoist.compile(model, bundle, {})
    answer = hoist.evaluate(bundle, data)
    print(f"{name}: hoist       {answer['correct']} of {answer['total']}", flush=True)
    return good and (answer["correct"], answer["total"]) == (expected, total)


def mnist(options: argparse.Namespace) -> bool:
    data = WORK / "mnist.npz"
    subprocess.run([sys.executable, ROOT / "models" / "make_data.py", "idx", options.pictures, "--labels",
                    options.labels, "--input", "Input3", "-o", data], check=True, stdout=subprocess.DEVNULL)
    return evaluate("mnist-8", options.model, data, options)


def resnets(options: argparse.Namespace) -> bool:
    names = options.topology
    missing = [name for name in names if not (TOPOLOGIES / f"{name}.onnx").exists()]
    if missing:
        subprocess.run([sys.executable, ROOT / "models" / "write_topologies.py", TOPOLOGIES, "--only", *missing],
                       check=True)
    good = True
    for name in names:
        model = TOPOLOGIES / f"{name}.onnx"
        inputs = random_inputs(model, {})
        expected = OnnxRuntime(model, cores()).run(inputs)
        sizes = ", ".join(f"{output} {list(x.shape)}, largest {np.abs(x).max():.3g}" for output, x in expected.items())
        print(f"{name}: onnxruntime gives {sizes}", flush=True)
        if options.only_onnxruntime:
            continue
        hoist = Hoist(options.hoist, options.device)
        bundle = WORK / f"{name}.hoist"
        hoist.compile(model, bundle, {})
        got = hoist.run(bundle, inputs, list(expected))
        wrong = difference(got, expected)
        largest = max(float(np.abs(got[output] - want).max()) for output, want in expected.items()
                      if got[output].shape == want.shape) if not wrong else None
        print(f"{name}: " + (wrong or f"within rtol {RTOL:g} and atol {ATOL:g}, largest difference {largest:.2g}"))
        good &= wrong is None
    return good


def digits(options: argparse.Namespace) -> bool:
    recorded = json.loads((ROOT / "models" / "accuracy.json").read_text())
    good = True
    for name, counts in recorded.items():
        folder = ROOT / "models"
        good &= evaluate(name, folder / f"{name}.onnx", folder / f"{name}_test.npz", options, counts["test_correct"])
    return good


def main() -> int:
    program = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--hoist", type=Path, default=Hoist.program, help="the program, build/release/hoist")
    common.add_argument("--device", help="hoist's device; the first one unless given")
    common.add_argument("--only-onnxruntime", action="store_true", help="leave hoist out")
    kinds = program.add_subparsers(dest="kind", required=True)
    kind = kinds.add_parser("mnist", parents=[common], help="a digit classifier with an input called Input3")
    kind.add_argument("model", type=Path)
    kind.add_argument("--pictures", type=Path, required=True, help="IDX file")
    kind.add_argument("--labels", type=Path, required=True, help="IDX file")
    kind.set_defaults(check=mnist)
    kind = kinds.add_parser("resnets", parents=[common], help="seeded topologies of models/write_topologies.py")
    kind.add_argument("--topology", nargs="+", default=["resnet18", "resnet50"], help="models of write_topologies.py")
    kind.set_defaults(check=resnets)
    kinds.add_parser("digits", parents=[common], help="the models of models/").set_defaults(check=digits)
    options = program.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        return 0 if options.check(options) else 1
    except Failure as failure:
        complain(str(failure))
    except subprocess.CalledProcessError as failure:
        complain(f"{Path(failure.cmd[1]).name} exited with {failure.returncode}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
