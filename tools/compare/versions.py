"""Every version of the operators whose meaning changed, hoist against definitions written down here. Development only.

    build/compare/bin/python tools/compare/versions.py --count 2000 --interpret      # without a device
    build/compare/bin/python tools/compare/versions.py --only Softmax --count 200
    build/compare/bin/python tools/compare/versions.py --count 500 --target native

A case is one node of a version, with random attributes, types and ranks, in a model of an opset in which that version
holds; operands are inputs, initialisers or computed values, and the node is in the graph, in a branch of If, or in a
function that is written for another opset than its model. The expected values come from a definition in numpy, whose
comment quotes the sentence of the standard, or from ONNX's reference evaluator for versions that it knows. Cases that
differ are kept in build/compare/work/versions with their data. Exit code 1 if a case differs.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import sys
import tarfile
import time
import warnings
from pathlib import Path
from typing import Callable

import numpy as np
import onnx

import fuzz
import version_arithmetic  # noqa: F401, its definitions are rows of MAKERS
import version_movement  # noqa: F401
from engines import HOIST, WORK
from version_cases import MAKERS, NEWEST, Array, Case, Random

FOLDER = WORK / "versions"


def model_of(case: Case, r: Random) -> tuple[onnx.ModelProto, list[Array]]:
    """The case as a model, and the arrays of its inputs."""
    info, nodes, given, constants, names = onnx.helper.make_tensor_value_info, [], [], [], []
    arrays: list[Array] = []
    for place, array in enumerate(case.inputs):
        name = "" if array is None else f"x{place}"
        if array is not None:
            way = r.pick(["constant", "computed"]) if place in case.fixed else r.pick(["input", "input", "constant", "computed"])
            source = f"{name}_source" if way == "computed" else name
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            if way == "input" or way == "computed" and place not in case.fixed:
                given.append(info(source, kind, array.shape))
                arrays.append(array)
            else:
                constants.append(onnx.numpy_helper.from_array(np.asarray(array, order="C"), source))
                if case.opset < 9:  # initialisers were inputs with a default
                    given.append(info(source, kind, array.shape))
            if way == "computed":
                nodes.append(onnx.helper.make_node("Identity", [source], [name]))
        names.append(name)
    while names and not names[-1]:
        names.pop()
    results = ["" if value is None else f"y{i}" for i, value in enumerate(case.outputs)]
    node = onnx.helper.make_node(case.operation, names, results, name="layer", **case.attributes)
    outputs = [info(f"y{i}", onnx.helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype), np.shape(v))
               for i, v in enumerate(case.outputs) if v is not None]
    opsets, functions = [onnx.helper.make_opsetid("", case.opset)], []
    place = r.pick(["graph", "graph", "graph", "branch", "function"])
    if case.operation == "Scan" and place == "branch":
        place = "graph"
    if place == "branch":
        graphs = []
        for branch in ("then", "else"):
            inner = [onnx.helper.make_value_info(f"{o.name}_{branch}", o.type) for o in outputs]
            body = onnx.NodeProto()
            body.CopyFrom(node)
            del body.output[:]
            body.output.extend(f"{n}_{branch}" if n else "" for n in results)
            graphs.append(onnx.helper.make_graph([body], branch, [], inner))
        node = onnx.helper.make_node("If", ["condition"], [n for n in results if n], name="choice", then_branch=graphs[0],
                                     else_branch=graphs[1])
        given.append(info("condition", onnx.TensorProto.BOOL, [1]))
        arrays.append(np.array([r.chance(0.5)]))
    if place == "function" and case.opset >= 2:
        formal = [n for n in names if n]
        functions = [onnx.helper.make_function("own", "call", formal, [n for n in results if n], [node], opsets)]
        node = onnx.helper.make_node("call", formal, [n for n in results if n], name="call", domain="own")
        opsets = [onnx.helper.make_opsetid("", r.integer(14, NEWEST)), onnx.helper.make_opsetid("own", 1)]
    graph = onnx.helper.make_graph([*nodes, node], "versions", given, outputs, constants)
    return onnx.helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10 if functions else 3 if (
        case.opset < 9) else 8), arrays


def make_case(seed: int, names: list[str]) -> Case | None:
    r = Random(seed)
    name = names[seed % len(names)]
    since, make = MAKERS[name]
    first = r.pick(since)
    later = [version for version in since if version > first]
    return make(r, r.integer(first, (later[0] if later else NEWEST + 1) - 1))


def write_data(folder: Path, model: onnx.ModelProto, inputs: list[Array], outputs: list[Array]) -> None:
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, values in (("input", inputs), ("output", outputs)):
        for place, value in enumerate(values):
            (data / f"{kind}_{place}.pb").write_bytes(
                onnx.numpy_helper.from_array(np.array(value, order="C")).SerializeToString())


def write_case(seed: int, names: list[str], folder: Path) -> str | None:
    """Writes the case of a seed and returns its description; None if the seed has no case."""
    case = make_case(seed, names)
    if case is None:
        return None
    model, arrays = model_of(case, Random(seed + 1_000_000_007))
    write_data(folder, model, arrays, case.expected())
    return f"{case.operation} of opset {case.opset}"


def archive(write: Callable[[int, list[str], Path], str | None], options: argparse.Namespace) -> int:
    """Adds the cases to a tar.xz, which also contains the cases of other scripts."""
    folder = options.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kind = Path(sys.argv[0]).stem
    if options.archive.exists():
        shutil.unpack_archive(options.archive, folder)
        for old in folder.glob(f"{kind}_*"):
            shutil.rmtree(old)
    for seed in range(options.seed, options.seed + options.count):
        write(seed, sorted(MAKERS), folder / f"{kind}_{seed}")

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(options.archive, "w:xz", preset=9 | lzma.PRESET_EXTREME) as out:
        for case in sorted(folder.iterdir()):
            out.add(case, case.name, filter=plain)
    return 0


def main(write: Callable[[int, list[str], Path], str | None], kept: Path, about: str | None) -> int:
    """Writes and compares the case of each seed; cases that differ stay in `kept`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", type=Path, default=HOIST, help="the program (default: build/release/hoist)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; each further case has the next seed")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[], help="this operator")
    parser.add_argument("--batch", type=int, default=100, help="cases in one process of hoist")
    parser.add_argument("--time", type=float, default=0, help="begin no batch after this number of seconds")
    parser.add_argument("--folder", type=Path, default=kept, help="folder of the cases, which is emptied first")
    parser.add_argument("--archive", type=Path, help="write the cases into this file, which a test reads, without comparing")
    parser.add_argument("--interpret", action="store_true", help="evaluate programs, without a device")
    parser.add_argument("--target", action="append", default=[], type="--target={}".format)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if options.archive is not None:
        return archive(write, options)
    names, start, folder = options.only or sorted(MAKERS), time.monotonic(), options.folder
    fuzz.FOLDER = folder
    runner = fuzz.Runner(options.hoist, ["--interpret"] if options.interpret else options.target)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tried, differing = 0, 0
    for first in range(options.seed, options.seed + options.count, options.batch):
        if options.time and time.monotonic() - start > options.time:
            break
        cases = {}
        for seed in range(first, min(first + options.batch, options.seed + options.count)):
            about_case = write(seed, names, folder / "batch" / f"seed_{seed}")
            if about_case is not None:
                cases[f"seed_{seed}"] = about_case
        tried += len(cases)
        for name, message in runner.verdicts([folder / "batch" / name for name in cases]).items():
            if message:
                (folder / "batch" / name).rename(folder / name)
                differing += 1
                print(f"{name}: {cases[name]}: {message[:300]}", flush=True)
        shutil.rmtree(folder / "batch", ignore_errors=True)
    print(f"{tried} cases in {time.monotonic() - start:.0f} s: {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(write_case, FOLDER, __doc__))
