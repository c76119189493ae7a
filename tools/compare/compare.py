"""Measures hoist beside onnxruntime: both in one run, alternating, on the same cores. Development only.

    tools/compare/setup && build/compare/bin/python tools/compare/compare.py operators
    build/compare/bin/python tools/compare/compare.py models MODEL.onnx ... [--dim N=1]

Each round takes the lower quartile of many runs of one engine, then of the other; the table shows the median over the
rounds and the ratio of onnxruntime's time to hoist's (above 1: hoist is faster). `--only-onnxruntime` leaves hoist out.
Outputs are compared first (rtol 1e-3, atol 1e-4): a wrong result has no time. Measure on a quiet machine: the load
average is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
import onnxruntime

from engines import WORK, Failure, Hoist, OnnxRuntime, complain, cores, difference, lower_quartile, random_inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from network import Network  # noqa: E402  (the builder of models/)


def gemm_model(rows: int, inner: int, columns: int) -> Network:
    """MatMul of an input [rows, inner] with a constant weight."""
    network = Network("gemm", opset=17, seed=1)
    x = network.input("x", [rows, inner])
    weight = network.parameter("gemm/weight", network.normal((inner, columns), inner**-0.5))
    network.node("MatMul", "gemm", [x, weight], output="y")
    network.output("y", [rows, columns])
    return network


def convolution_model(extent: int, inputs: int, outputs: int, kernel: int) -> Network:
    """Convolution with bias, then ReLU, batch 1, padding that keeps the extent."""
    network = Network("convolution", opset=17, seed=1)
    x = network.input("x", [1, inputs, extent, extent], channels=inputs)
    network.node("Relu", "relu", [network.convolution("conv", x, outputs, kernel, bias=True)], output="y")
    network.output("y", [1, outputs, extent, extent])
    return network


@dataclass
class Operator:
    build: Callable[[], Network]
    operations: int  # additions and multiplications


def convolution_case(extent: int, inputs: int, outputs: int, kernel: int) -> Operator:
    operations = 2 * extent * extent * inputs * outputs * kernel * kernel
    return Operator(lambda: convolution_model(extent, inputs, outputs, kernel), operations)


OPERATORS: dict[str, Operator] = {
    "gemm_1024x1024x1024": Operator(lambda: gemm_model(1024, 1024, 1024), 2 * 1024**3),
    "conv3x3_56x56x64_64": convolution_case(56, 64, 64, 3),
    "conv3x3_28x28x128_128": convolution_case(28, 128, 128, 3),
    "conv3x3_14x14x256_256": convolution_case(14, 256, 256, 3),
    "conv3x3_7x7x512_512": convolution_case(7, 512, 512, 3),
    "conv1x1_28x28x512_128": convolution_case(28, 512, 128, 1),
}


@dataclass
class Result:
    """Times in milliseconds: medians over the rounds of the lower quartile of one round."""

    name: str
    onnxruntime_ms: float
    onnxruntime_main_node_ms: float | None = None  # the most expensive node alone, without layout reorders
    hoist_ms: float | None = None
    hoist_main_kernel_ms: float | None = None
    hoist_load_ms: float | None = None
    compile_s: float | None = None
    gigaoperations: float | None = None
    rounds: list[tuple[float, float | None]] = field(default_factory=list)

    def ratio(self) -> float | None:
        return self.onnxruntime_ms / self.hoist_ms if self.hoist_ms else None


def measure(name: str, model: Path, dimensions: dict[str, int], options: argparse.Namespace) -> Result:
    """Compiles, compares the outputs and times both engines. Raises Failure where hoist fails or is wrong."""
    hoist = Hoist(options.hoist, options.device, options.threads)
    engine = OnnxRuntime(model, options.threads or cores())
    inputs = random_inputs(model, dimensions)
    result = Result(name, 0.0)
    bundle = WORK / f"{name}.hoist"
    if not options.only_onnxruntime:
        result.compile_s = hoist.compile(model, bundle, dimensions, options.compile_option)
        expected = engine.run(inputs)
        wrong = difference(hoist.run(bundle, inputs, list(expected)), expected)
        if wrong:
            raise Failure(f"{name}: {wrong}")
    kernels: list[float] = []
    for _ in range(options.rounds):
        theirs = lower_quartile(engine.samples_ms(inputs, options.seconds))
        ours = None
        if not options.only_onnxruntime:
            bench = hoist.bench(bundle)
            ours = bench["lower_quartile_ms"]
            kernels.append(max((kernel["lower_quartile_ms"] for kernel in bench["kernels"]), default=0.0))
            result.hoist_load_ms = bench.get("load_ms")
        result.rounds.append((theirs, ours))
    result.onnxruntime_ms = float(np.median([theirs for theirs, _ in result.rounds]))
    if options.kind == "operators":
        result.onnxruntime_main_node_ms = max((time for _, time in engine.node_times_ms(inputs, 50)), default=None)
    if kernels:
        result.hoist_ms = float(np.median([ours for _, ours in result.rounds]))
        result.hoist_main_kernel_ms = float(np.median(kernels))
    return result


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


HEADINGS = ("name", "ort ms", "ort node ms", "hoist ms", "kernel ms", "ort/hoist", "ort GF/s", "hoist GF/s",
            "compile s")


def row(result: Result) -> str:
    def rate(milliseconds: float | None) -> float | None:
        return result.gigaoperations / milliseconds * 1e3 if result.gigaoperations and milliseconds else None

    cells = (number(result.onnxruntime_ms), number(result.onnxruntime_main_node_ms), number(result.hoist_ms),
             number(result.hoist_main_kernel_ms), number(result.ratio(), 2), number(rate(result.onnxruntime_ms), 0),
             number(rate(result.hoist_ms), 0), number(result.compile_s, 1))
    return f"{result.name:34}" + "".join(f"{cell:>12}" for cell in cells)


def dimension(text: str) -> tuple[str, int]:
    name, _, extent = text.partition("=")
    if not name or not extent.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not NAME=NUMBER")
    return name, int(extent)


def parse() -> argparse.Namespace:
    program = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--hoist", type=Path, default=Hoist.program, help="the program, build/release/hoist")
    common.add_argument("--device", help="hoist's device; the first one unless given")
    common.add_argument("--threads", type=int, help="of both engines; all cores of this process unless given")
    common.add_argument("--compile-option", action="append", default=[], metavar="OPTION",
                        help="handed on to hoist compile, --compile-option=--conv=im2col for instance")
    common.add_argument("--rounds", type=int, default=5, help="times that both engines take turns")
    common.add_argument("--seconds", type=float, default=1.0, help="of onnxruntime's part of a round")
    common.add_argument("--only-onnxruntime", action="store_true", help="leave hoist out")
    common.add_argument("--json", type=Path, help="write the results there too")
    kinds = program.add_subparsers(dest="kind", required=True)
    operators = kinds.add_parser("operators", parents=[common], help="single operators: " + ", ".join(OPERATORS))
    operators.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS), metavar="NAME")
    models = kinds.add_parser("models", parents=[common], help="whole models")
    models.add_argument("model", type=Path, nargs="+")
    models.add_argument("--dim", type=dimension, action="append", default=[], metavar="NAME=N",
                        help="a symbolic dimension; 1 where not given")
    return program.parse_args()


def main() -> int:
    options = parse()
    WORK.mkdir(parents=True, exist_ok=True)
    load = " ".join(f"{average:.2f}" for average in os.getloadavg())
    print(f"onnxruntime {onnxruntime.__version__}, {options.threads or cores()} threads, load average {load}")
    print(f"{HEADINGS[0]:34}" + "".join(f"{heading:>12}" for heading in HEADINGS[1:]), flush=True)
    cases: list[tuple[str, Path, dict[str, int], float | None]] = []
    if options.kind == "operators":
        for name in options.only:
            path = WORK / f"{name}.onnx"
            OPERATORS[name].build().write(path)
            cases.append((name, path, {}, OPERATORS[name].operations / 1e9))
    else:
        for path in options.model:
            names = {axis.dim_param for value in onnx.load(path, load_external_data=False).graph.input
                     for axis in value.type.tensor_type.shape.dim if axis.dim_param}
            cases.append((path.stem, path, {name: dict(options.dim).get(name, 1) for name in sorted(names)}, None))
    results, failures = [], 0
    for name, path, dimensions, gigaoperations in cases:
        try:
            result = measure(name, path, dimensions, options)
        except Failure as failure:
            complain(str(failure))
            failures += 1
            continue
        result.gigaoperations = gigaoperations
        results.append(result)
        print(row(result), flush=True)
    if options.json:
        entries = [{**asdict(result), "ratio": result.ratio()} for result in results]
        options.json.write_text(json.dumps(entries, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
