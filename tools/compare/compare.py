"""Measures hoist and other engines in one run, interleaved on the same cores. Development only.

    tools/compare/peers MODEL.onnx ... [--dim N=1] [--topologies] [--json FILE]
    build/compare/bin/python tools/compare/compare.py operators
    build/compare/bin/python tools/compare/compare.py shapes [--every 10]
    build/compare/bin/python tools/compare/compare.py blocks [--only attention]

Each round takes the lower quartile of many runs of one engine, then of the next; the table shows the median over the
rounds and the ratio of hoist's time to that of the fastest peer (below 1: hoist is faster). Outputs are compared with
onnxruntime's first: a wrong result has no time. Measure on a quiet machine: the load average is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Callable

import numpy as np
import onnx

from blocks import BLOCKS
from engines import (PEERS, WORK, Arrays, Clock, Failure, Hoist, complain, cores, difference, first_load, lower_quartile,
                     random_inputs)
from shapes import SHAPES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from network import Network  # noqa: E402  (the builder of models/)
from write_topologies import TOPOLOGIES, write  # noqa: E402


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
    """Times in milliseconds, by engine: medians over the rounds of the lower quartile of one round."""

    name: str
    ms: dict[str, float] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # by peer, the reason why it has no time
    main_kernel_ms: float | None = None
    main_node_ms: float | None = None  # onnxruntime's most expensive node alone, without layout reorders
    load: dict[str, dict[str, float]] = field(default_factory=dict)  # load_ms and memory_mb of a process of its own
    bundle_mb: float | None = None
    compile_s: float | None = None
    gigaoperations: float | None = None

    def best_peer(self) -> float | None:
        return min((time for engine, time in self.ms.items() if engine != "hoist"), default=None)

    def ratio(self) -> float | None:
        best = self.best_peer()
        return self.ms["hoist"] / best if best and "hoist" in self.ms else None


def make_peers(model: Path, inputs: Arrays, options: argparse.Namespace, result: Result) -> list:
    """The peers that accept the model and have the same outputs as onnxruntime, the first peer."""
    peers, expected = [], None
    for name in options.peers:
        try:
            peer = PEERS[name](model, options.threads or cores(), inputs)
            got = peer.run(inputs)
            if expected is None:
                expected = got
            elif wrong := difference(reshaped(got, expected), expected, *options.tolerance):
                raise Failure(f"{name}: {wrong}")
        except Exception as failure:  # each peer raises its own exceptions for refused models and data
            result.left_out[name] = str(failure)
            continue
        peers.append(peer)
    if not peers or peers[0].name != options.peers[0]:
        raise Failure(f"{result.name}: {result.left_out[options.peers[0]]}")
    return peers


def reshaped(got: Arrays, expected: Arrays) -> Arrays:
    """The shape without the batch dimension, which ncnn omits."""
    return {name: value.reshape(expected[name].shape) if value.size == expected[name].size else value
            for name, value in got.items()}


def measure(name: str, model: Path, dimensions: dict[str, int], options: argparse.Namespace) -> Result:
    """Compiles, compares the outputs and times the engines. Raises Failure if hoist fails or its output is wrong."""
    hoist = Hoist(options.hoist, options.device, options.threads)
    inputs = random_inputs(model, dimensions)
    result = Result(name)
    peers = make_peers(model, inputs, options, result)
    bundle = WORK / f"{name}.hoist"
    result.compile_s = hoist.compile(model, bundle, dimensions, options.compile_option)
    expected = peers[0].run(inputs)
    if wrong := difference(hoist.run(bundle, inputs, list(expected)), expected, *options.tolerance):
        raise Failure(f"{name}: {wrong}")
    kernels: list[float] = []
    for _ in range(options.rounds):
        for peer in peers:
            result.rounds.setdefault(peer.name, []).append(lower_quartile(peer.samples_ms(inputs, options.seconds)))
        if options.processor_time:
            own = hoist.samples_ms(bundle, inputs, options.seconds)
            result.rounds.setdefault("hoist", []).append(lower_quartile(own))
            continue
        bench = hoist.bench(bundle, options.seconds)
        result.rounds.setdefault("hoist", []).append(bench["lower_quartile_ms"])
        kernels.append(max((kernel["lower_quartile_ms"] for kernel in bench["kernels"]), default=0.0))
    result.ms = {engine: float(np.median(times)) for engine, times in result.rounds.items()}
    result.main_kernel_ms = float(np.median(kernels)) if kernels else None
    if options.kind == "operators" and peers[0].name == "onnxruntime":
        result.main_node_ms = max((time for _, time in peers[0].node_times_ms(inputs, 50)), default=None)
    if options.kind == "models" and not options.no_load:
        for kind, found in hoist.first_load(bundle).items():
            result.load[f"hoist {kind}"] = found
        for peer in peers:
            result.load[peer.name] = first_load(peer.name, model, options.threads or cores(), inputs)
        result.bundle_mb = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()) / 1e6
    return result


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def headings(options: argparse.Namespace) -> list[str]:
    more = ["GF/s", "node ms", "kernel ms"] if options.kind == "operators" else []
    load = ["cold ms", "warm ms", "MB"] if options.kind == "models" and not options.no_load else []
    return [*(f"{name} ms" for name in options.peers), "hoist ms", "to best", *more, *load]


def row(result: Result, options: argparse.Namespace) -> str:
    cells = [*(number(result.ms.get(name)) for name in options.peers), number(result.ms.get("hoist")),
             number(result.ratio(), 2)]
    if options.kind == "operators":
        rate = result.gigaoperations / result.ms["hoist"] * 1e3 if result.gigaoperations else None
        cells += [number(rate, 0), number(result.main_node_ms), number(result.main_kernel_ms)]
    if result.load:
        cells += [number(result.load["hoist cold"]["load_ms"], 0), number(result.load["hoist warm"]["load_ms"], 0),
                  number(result.load["hoist warm"]["memory_mb"], 0)]
    return f"{result.name:36}" + "".join(f"{cell:>15}" for cell in cells)


def summary(results: list[Result]) -> str:
    ratios = sorted(ratio for result in results if (ratio := result.ratio()))
    if not ratios:
        return "nothing was measured"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (f"hoist's time over the fastest peer's, {len(ratios)} cases: geometric mean {mean:.2f}, median "
            f"{float(np.median(ratios)):.2f}, largest {ratios[-1]:.2f}, {sum(r > 1.5 for r in ratios)} above 1.5")


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
    common.add_argument("--threads", type=int, help="threads of all engines (default: all cores of this process)")
    common.add_argument("--compile-option", action="append", default=[], metavar="OPTION",
                        help="an option for hoist compile, for example --compile-option=--pass=convolution=im2col")
    common.add_argument("--rounds", type=int, default=5, help="number of interleaved rounds")
    common.add_argument("--seconds", type=float, default=1.0, help="seconds of one engine per round")
    common.add_argument("--processor-time", action="store_true",
                        help="one thread of each engine on one core, timed by the processor's time: on busy machines")
    common.add_argument("--tolerance", type=float, nargs=2, default=[1e-3, 1e-4], metavar=("RTOL", "ATOL"),
                        help="tolerance of equal outputs")
    common.add_argument("--json", type=Path, help="write the results there too")
    kinds = program.add_subparsers(dest="kind", required=True)
    operators = kinds.add_parser("operators", parents=[common], help="single operators: " + ", ".join(OPERATORS))
    operators.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS), metavar="NAME")
    generated = [kinds.add_parser(kind, parents=[common], help=f"{len(names)} {kind} of {whole}, to find cliffs")
                 for kind, whole, names in (("shapes", "layers", SHAPES), ("blocks", "networks", BLOCKS))]
    for kind in generated:
        kind.add_argument("--every", type=int, default=1, metavar="N", help="one of N cases")
        kind.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N cases")
        kind.add_argument("--only", default="", metavar="TEXT", help="only cases whose names contain this")
    models = kinds.add_parser("models", parents=[common], help="whole models, compared with all peers")
    models.add_argument("model", type=Path, nargs="*")
    models.add_argument("--topologies", nargs="*", choices=TOPOLOGIES, metavar="NAME",
                        help="also these networks with seeded weights, all unless named: " + ", ".join(TOPOLOGIES))
    models.add_argument("--dim", type=dimension, action="append", default=[], metavar="NAME=N",
                        help="a symbolic dimension; 1 where not given")
    models.add_argument("--no-load", action="store_true", help="leave out loading times and memory")
    for kind, peers in ((operators, ["onnxruntime"]), (models, list(PEERS)), *((kind, ["onnxruntime"]) for kind in generated)):
        kind.add_argument("--peers", nargs="+", choices=PEERS, default=peers, help="the first engine's outputs are the reference")
    options = program.parse_args()
    if options.kind == "models" and not options.model and options.topologies is None:
        models.error("names no model: MODEL.onnx ..., or --topologies")
    return options


@dataclass
class Case:
    name: str
    model: Path
    dimensions: dict[str, int] = field(default_factory=dict)
    gigaoperations: float | None = None


def model_cases(options: argparse.Namespace) -> list[Case]:
    models = list(options.model)
    if options.topologies is not None:
        models += write(WORK, options.topologies or list(TOPOLOGIES))
    cases = []
    for path in models:
        names = {axis.dim_param for value in onnx.load(path, load_external_data=False).graph.input
                 for axis in value.type.tensor_type.shape.dim if axis.dim_param}
        cases.append(Case(path.stem, path, {name: dict(options.dim).get(name, 1) for name in sorted(names)}))
    return cases


def cases_of(options: argparse.Namespace) -> list[Case]:
    if options.kind == "models":
        return model_cases(options)
    cases = []
    if options.kind == "operators":
        for name in options.only:
            path = WORK / f"{name}.onnx"
            OPERATORS[name].build().write(path)
            cases.append(Case(name, path, {}, OPERATORS[name].operations / 1e9))
        return cases
    builders = {"shapes": SHAPES, "blocks": BLOCKS}[options.kind]
    for name in [name for name in builders if options.only in name][options.skip :: options.every]:
        path = WORK / f"{name}.onnx"
        builders[name]().write(path)
        cases.append(Case(name, path))
    return cases


def machine() -> str:
    """The processor's name and the number of its cores that this process may use."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = re.findall(r"^model name\s*: (.*)$", text, re.M)
    return f"{names[0] if names else 'unknown processor'}, {cores()} cores"


def report(results: list[Result], options: argparse.Namespace, load: str) -> dict[str, object]:
    """The results with the conditions of their measurement, as performance.py reads them."""
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "conditions": f"{options.threads or cores()} threads, {' '.join(options.compile_option) or 'OpenCL'}, engines interleaved, "
                      f"load average {load}",
        "engines": {name: f"{name} {version(name)}" for name in options.peers},
        "results": [{**asdict(result), "ratio": result.ratio()} for result in results],
    }


def main() -> int:
    options = parse()
    if options.processor_time:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        options.threads = 1
        Clock.take_processor_time()
    WORK.mkdir(parents=True, exist_ok=True)
    load = " ".join(f"{average:.2f}" for average in os.getloadavg())
    print(f"{options.threads or cores()} threads, load average {load}")
    print(f"{'':36}" + "".join(f"{heading:>15}" for heading in headings(options)), flush=True)
    results, failures = [], 0
    for case in cases_of(options):
        try:
            result = measure(case.name, case.model, case.dimensions, options)
        except Failure as failure:
            complain(str(failure))
            failures += 1
            continue
        result.gigaoperations = case.gigaoperations
        results.append(result)
        print(row(result, options), flush=True)
        for peer, why in result.left_out.items():
            print(f"    {peer} is left out: {why[:160]}", flush=True)
    print(summary(results))
    if options.json:
        options.json.write_text(json.dumps(report(results, options, load), indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
