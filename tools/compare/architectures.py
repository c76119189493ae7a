"""Published architectures of others, exported by PyTorch with random weights: does hoist compute the results of
onnxruntime, and, with --speed and at real sizes, in which time? Development only.

    tools/compare/setup architectures     # PyTorch from Debian, timm and transformers from PyPI, in build/architectures
    build/compare/bin/python tools/compare/architectures.py [--only TEXT] [--target native] [--json FILE]
    build/compare/bin/python tools/compare/architectures.py --speed [--only TEXT] [--target native] [--threads 2]

With --speed onnxruntime, openvino and hoist run interleaved, as in compare.py: the ratio is hoist's time over that of the
faster of the two. Models whose export failed, or that onnxruntime cannot run, are not counted. The exit code is 1 if an
output differs by more than 2e-3 (absolute and relative) or hoist refuses a model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from compare import measure, report, summary
from engines import HOIST, ROOT, WORK, Failure

PYTHON = ROOT / "build" / "architectures" / "bin" / "python"
EXPORT = Path(__file__).with_name("export_architecture.py")
KINDS: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int32)": np.int32,
                         "tensor(int64)": np.int64, "tensor(bool)": np.bool_}


def record(folder: Path) -> None:
    """Random inputs, and onnxruntime's results, as `hoist test` reads them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    given = {}
    for value in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
        kind = np.dtype(KINDS[value.type])
        given[value.name] = (random.random(shape) if kind.kind == "f" else
                             random.integers(2, 50, shape) if kind.kind == "i" else np.ones(shape)).astype(kind)
    names = [value.name for value in session.get_outputs()]
    data = folder / "test_data_set_0"
    data.mkdir(exist_ok=True)
    for what, arrays in (("input", given), ("output", dict(zip(names, session.run(None, given))))):
        for place, (name, array) in enumerate(arrays.items()):
            tensor = onnx.numpy_helper.from_array(np.asarray(array), name)
            (data / f"{what}_{place}.pb").write_bytes(tensor.SerializeToString())


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:160] if lines else ""


def export(name: str, model: Path, options: argparse.Namespace) -> str:
    """"", or the reason why there is no model."""
    model.parent.mkdir(parents=True, exist_ok=True)
    if model.exists():
        return ""
    real = ["--real"] if options.speed else []
    try:
        done = subprocess.run([options.exporter, EXPORT, name, model, *real], capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "the export took more than ten minutes"
    if done.returncode != 0:
        model.unlink(missing_ok=True)
        return "export: " + last_line(done.stderr)
    return ""


def speed(name: str, options: argparse.Namespace) -> tuple[str, str]:
    """The verdict "passed" with the times, or a failed verdict with its reason."""
    model = options.models / (name.replace("/", "_") + ".onnx")
    if reason := export(name, model, options):
        return "left out", reason
    try:
        result = measure(name.replace("/", "_"), model, {}, options)
    except Failure as failure:
        return "differs", str(failure)[:300]
    options.measured.append(result)
    times = ", ".join(f"{engine} {time:.2f} ms" for engine, time in result.ms.items())
    return "passed", f"{result.ratio() or 0:.2f}  {times}"


def verdict(name: str, options: argparse.Namespace) -> tuple[str, str]:
    """"passed", "differs" (also if refused), "slow" or "left out", and the reason."""
    folder = WORK / "architectures" / name.replace("/", "_")
    if reason := export(name, folder / "model.onnx", options):
        return "left out", reason
    try:
        record(folder)
    except Exception as error:  # the library's own classes
        return "left out", "onnxruntime: " + str(error).splitlines()[0][:160]
    command = [options.hoist, "test", folder, "--rtol", "2e-3", "--atol", "2e-3"]
    if options.target:
        command += ["--target", options.target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.most)
    except subprocess.TimeoutExpired:
        return "slow", f"more than {options.most:.0f} s"
    return ("passed", "") if done.returncode == 0 else ("differs", (done.stdout + done.stderr).strip().splitlines()[0][:300])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", type=Path, default=HOIST, help="the program (default: build/release/hoist)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only architectures whose names contain this")
    parser.add_argument("--target", default="", help="the target of hoist compile (default: the first OpenCL device)")
    parser.add_argument("--most", type=float, default=600, metavar="SECONDS", help="for one model")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--speed", action="store_true", help="times at real sizes")
    parser.add_argument("--threads", type=int, default=2, help="of all engines")
    parser.add_argument("--rounds", type=int, default=5, help="number of interleaved rounds")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of one engine per round")
    parser.add_argument("--models", type=Path, default=WORK / "real", help="the folder of exports at real sizes")
    parser.add_argument("--exporter", type=Path, default=PYTHON, help="a Python that has PyTorch")
    options = parser.parse_args()
    options.peers, options.kind, options.no_load = ["onnxruntime", "openvino"], "architectures", True
    options.tolerance, options.processor_time = [2e-3, 2e-3], False
    options.measured = []  # list[Result]
    options.compile_option = ["--no-check", *(["--target", options.target] if options.target else [])]
    options.device = None
    real = ["--real"] if options.speed else []
    listed = subprocess.run([options.exporter, EXPORT, *real], capture_output=True, text=True, check=True)
    names = listed.stdout.split()
    results = {}
    for name in names:
        if options.only not in name:
            continue
        start = time.monotonic()
        results[name] = dict(zip(("verdict", "reason"), (speed if options.speed else verdict)(name, options)))
        results[name]["seconds"] = round(time.monotonic() - start, 1)
        print(f"{results[name]['verdict']:9} {name} {results[name]['reason']}", flush=True)
    counts = {what: sum(result["verdict"] == what for result in results.values())
              for what in ("passed", "differs", "slow", "left out")}
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    if options.speed:
        print(summary(options.measured))
    if options.json:
        load = " ".join(f"{average:.2f}" for average in os.getloadavg())
        found = report(options.measured, options, load) if options.speed else results
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if counts["differs"] or counts["slow"] else 0


if __name__ == "__main__":
    sys.exit(main())
