"""Random models, hoist against ONNX's reference evaluator, with onnxruntime as the judge. Development only.

    build/compare/bin/python tools/compare/fuzz.py --count 1000 --interpret       # without a device, a few models per second
    build/compare/bin/python tools/compare/fuzz.py --count 200                    # on the first device
    build/compare/bin/python tools/compare/fuzz.py --count 1000 --target native   # as native code
    build/compare/bin/python tools/compare/fuzz.py --seed 17 --count 1            # the model of one seed again

A model has 5 to 40 nodes with unusual attributes over arrays of all types whose extents are near vector widths; with --large
it has up to four nodes over arrays that are tiled and divided among threads. The reference evaluates each node as it is
added, so extents and values are known and meaningless nodes are omitted. Operands of discontinuous operators (rounding,
comparing, casting to integers) are values that every engine computes exactly. One process of `hoist test` handles many
models. A model with a difference is reduced to the first node that differs, then to as few nodes before it as needed, and
stays in build/compare/work/fuzz with its data. A difference is *found* if onnxruntime agrees with the reference, *outvoted* if
it agrees with hoist, *disputed* if all three differ, and *unwitnessed* if it cannot run the model. The exit code is 1 if a
difference is found.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from engines import HOIST, WORK
from fuzz_model import LARGE, SMALL, Maker, Model
from fuzz_nodes import KINDS

FOLDER = WORK / "fuzz"
VERDICTS = ["found", "disputed", "unwitnessed", "outvoted"]


def write_case(folder: Path, model: Model, outputs: list[str], cut: set[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    proto, given = model.proto(outputs, cut)
    onnx.save(proto, folder / "model.onnx")
    for kind, names in (("input", given), ("output", outputs)):
        for place, name in enumerate(names):
            tensor = onnx.numpy_helper.from_array(np.array(model.values[name].array, order="C"), name)
            (data / f"{kind}_{place}.pb").write_bytes(tensor.SerializeToString())


@dataclass
class Runner:
    program: Path
    options: list[str]

    def verdicts(self, folders: list[Path]) -> dict[str, str]:
        """The failure of hoist in each case; "" if it agrees with the reference."""
        answer = FOLDER / "answer.json"
        answer.unlink(missing_ok=True)
        command = [str(self.program), "test", *map(str, folders), "--json", str(answer), "--rtol", "2e-3", "--atol", "2e-3",
                   *self.options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 * len(folders))
            ended = f"ended with {done.returncode}: {done.stderr.strip()[-500:]}"
        except subprocess.TimeoutExpired:
            ended = "took longer than a minute per model"
        if answer.exists():
            return {case["name"]: case.get("message", "") for case in json.loads(answer.read_text())["cases"]}
        if len(folders) == 1:
            return {folders[0].name: ended}
        half = len(folders) // 2
        return {**self.verdicts(folders[:half]), **self.verdicts(folders[half:])}


def session_outputs(path: str, data: dict[str, np.ndarray], answer: Any) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        answer.send(session.run(None, data))
    except Exception as problem:
        answer.send(str(problem).splitlines()[0])


def onnxruntime_says(runner: Runner, folder: Path, model: Model, output: str, cut: set[str]) -> tuple[str, str]:
    """The verdict on a difference, or the reason why there is none."""
    _, given = model.proto([output], cut)
    receiver, sender = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=session_outputs, args=(
        str(folder / "model.onnx"), {name: np.asarray(model.values[name].array) for name in given}, sender))
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = "ends the process"
    process.join()
    if isinstance(found, str):
        return "unwitnessed", found[:200]
    expected = model.values[output].array
    if np.shape(found[0]) == expected.shape and np.allclose(
            np.asarray(found[0], np.float64), expected.astype(np.float64), 2e-3, 2e-3, equal_nan=True):
        return "found", ""
    theirs = FOLDER / "theirs"
    model.values[output].array = np.asarray(found[0], expected.dtype)
    write_case(theirs, model, [output], cut)
    model.values[output].array = expected
    return ("disputed" if runner.verdicts([theirs])["theirs"] else "outvoted"), ""


def reduce(runner: Runner, seed: int, model: Model) -> tuple[Path, str, str, str]:
    """The folder of the smallest model that still differs, hoist's message, and the verdict with its reason."""
    places = {}
    for place, name in enumerate(name for node in model.nodes for name in node.outputs):
        folder = FOLDER / "parts" / f"part_{place:03}"
        write_case(folder, model, [name], set())
        places[folder.name] = (folder, name)
    verdicts = runner.verdicts([folder for folder, _ in places.values()])
    kept = FOLDER / f"finding_{seed}"
    bad = [name for name, message in sorted(verdicts.items()) if message]
    if not bad:  # the difference only shows with all outputs together
        write_case(kept, model, model.leaves(), set())
        return kept, runner.verdicts([kept])[kept.name], "unwitnessed", "only several outputs together show the difference"
    output, cut = places[bad[0]][1], set()
    made = [name for node in model.nodes for name in node.outputs if name != output]
    for attempt in [set(made)] + [{name} for name in reversed(made)]:
        write_case(kept, model, [output], cut | attempt)
        if runner.verdicts([kept])[kept.name]:
            cut |= attempt
            if len(attempt) > 1:
                break
    write_case(kept, model, [output], cut)
    return kept, runner.verdicts([kept])[kept.name], *onnxruntime_says(runner, kept, model, output, cut)


def explore(options: argparse.Namespace, seeds: range, folder: Path, answer: Any) -> None:
    """Tries these seeds with a folder of its own, prints differences, and sends the number of each verdict."""
    global FOLDER
    FOLDER = folder
    FOLDER.mkdir(parents=True, exist_ok=True)
    runner = Runner(options.hoist, ["--interpret"] if options.interpret else options.target)
    counts = dict.fromkeys(["models", "nodes", *VERDICTS], 0)
    end = time.monotonic() + options.time if options.time else None
    for first in range(seeds.start, seeds.stop, options.batch):
        if end and time.monotonic() > end:
            break
        models = {}
        for seed in range(first, min(first + options.batch, seeds.stop)):
            model = Maker(seed, LARGE if options.large else SMALL).make(KINDS)
            if not model.nodes:
                continue
            case = FOLDER / "batch" / f"seed_{seed}"
            write_case(case, model, model.leaves(), set())
            models[case.name] = (seed, model, case)
            counts["nodes"] += len(model.nodes)
        counts["models"] += len(models)
        for name, message in runner.verdicts([case for _, _, case in models.values()]).items():
            if not message:
                continue
            seed, model, _ = models[name]
            kept, least, verdict, reason = reduce(runner, seed, model)
            graph = onnx.load(kept / "model.onnx").graph
            counts[verdict] += 1
            print(f"{verdict}: seed {seed}: {' '.join(node.op_type for node in graph.node)}: {least[:300]} "
                  f"{f'(onnxruntime: {reason}) ' if reason else ''}in {kept}", flush=True)
        shutil.rmtree(FOLDER / "batch", ignore_errors=True)
    answer.send(counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", type=Path, default=HOIST, help="the program (default: build/release/hoist)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first model; each further model has the next seed")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--batch", type=int, default=20, help="models in one process of hoist")
    parser.add_argument("--jobs", type=int, default=1, help="number of batches side by side")
    parser.add_argument("--time", type=float, default=0, help="begin no batch after this number of seconds")
    parser.add_argument("--large", action="store_true", help="few nodes over arrays of up to 300,000 elements")
    parser.add_argument("--interpret", action="store_true", help="evaluate programs, without a device")
    parser.add_argument("--target", action="append", default=[], type="--target={}".format,
                        help="the target of hoist test, for example native")
    options = parser.parse_args()
    start = time.monotonic()
    share = -(-options.count // options.jobs)
    answers, jobs = [], []
    for job in range(options.jobs):
        first = options.seed + job * share
        seeds = range(first, min(first + share, options.seed + options.count))
        receiver, sender = multiprocessing.Pipe(False)
        jobs.append(multiprocessing.Process(target=explore, args=(options, seeds, FOLDER / f"job_{job}", sender)))
        jobs[-1].start()
        sender.close()
        answers.append(receiver)
    total = dict.fromkeys(["models", "nodes", *VERDICTS], 0)
    ended_early = 0
    for answer, job in zip(answers, jobs):
        try:
            for what, count in answer.recv().items():
                total[what] += count
        except EOFError:
            ended_early += 1
        job.join()
    print(f"{total['models']} models of {total['nodes']} nodes in {time.monotonic() - start:.0f} s: "
          f"{', '.join(f'{total[verdict]} {verdict}' for verdict in VERDICTS)}")
    if ended_early:
        print(f"error: {ended_early} jobs ended without an answer", file=sys.stderr)
    return 1 if total["found"] or ended_early else 0


if __name__ == "__main__":
    sys.exit(main())
