"""What the comparison scripts share: running the hoist program and onnxruntime, and comparing their outputs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
HOIST = ROOT / "build" / "release" / "hoist"
WORK = ROOT / "build" / "compare" / "work"
RTOL, ATOL = 1e-3, 1e-4

Arrays = dict[str, np.ndarray]


class Failure(Exception):
    """A program failed; the text says which and what it wrote."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def lower_quartile(samples: Sequence[float]) -> float:
    return float(np.percentile(samples, 25))


def file_name(value: str) -> str:
    """The name under which `hoist run` writes an output: characters outside A-Z a-z 0-9 _ . - become _."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", value)


def random_inputs(model: Path, dimensions: dict[str, int], seed: int = 1) -> Arrays:
    """Normal numbers for float inputs, small non-negative ones for integers; unnamed and unlisted dimensions are 1."""
    graph = onnx.load(model, load_external_data=False).graph
    weights = {initializer.name for initializer in graph.initializer}
    random = np.random.default_rng(seed)
    inputs: Arrays = {}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [axis.dim_value or dimensions.get(axis.dim_param, 1) for axis in tensor.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(kind, np.floating):
            inputs[value.name] = random.standard_normal(shape).astype(kind)
        else:
            inputs[value.name] = random.integers(0, 2, shape).astype(kind)
    return inputs


@dataclass
class OnnxRuntime:
    """A session with `threads` threads on the CPU provider, all optimisations on, as installed."""

    model: Path
    threads: int

    def __post_init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Arrays) -> Arrays:
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, inputs)))

    def samples_ms(self, inputs: Arrays, seconds: float) -> list[float]:
        """Times of single runs, for about `seconds` after a warm-up of a fifth of that; at least ten of them. Inputs
        are bound once and outputs are kept in place, so nothing but the network is timed."""
        binding = self.session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        for name, value in self.run(inputs).items():
            binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        end = time.perf_counter() + seconds / 5
        while time.perf_counter() < end:
            self.session.run_with_iobinding(binding)
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while len(samples) < 10 or time.perf_counter() < end:
            start = time.perf_counter_ns()
            self.session.run_with_iobinding(binding)
            samples.append((time.perf_counter_ns() - start) / 1e6)
        return samples

    def node_times_ms(self, inputs: Arrays, runs: int) -> list[tuple[str, float]]:
        """(operator, lower quartile) of each node that onnxruntime itself executes, by its profiler; its layout
        reorders are nodes of their own there."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = str(WORK / "onnxruntime_profile")
        session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        for _ in range(runs):
            session.run(None, inputs)
        profile = Path(session.end_profiling())
        times: dict[tuple[str, str], list[float]] = {}
        for event in json.loads(profile.read_text()):
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                key = (event["args"].get("node_index", event["name"]), event["args"]["op_name"])
                times.setdefault(key, []).append(event["dur"] / 1e3)
        profile.unlink()
        warm = {key: durations[len(durations) // 5 :] for key, durations in times.items()}
        return [(operator, lower_quartile(durations)) for (_, operator), durations in warm.items()]


@dataclass
class Hoist:
    """The hoist program with the options that every call gets."""

    program: Path = HOIST
    device: str | None = None
    threads: int | None = None

    def call(self, *arguments: str | Path) -> float:
        """Runs `hoist ARGUMENTS`; the seconds it took. Raises Failure with what it wrote unless it exits with 0."""
        command = [str(self.program), *map(str, arguments)]
        start = time.perf_counter()
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            hint = "build it with tools/setup release"
            raise Failure(f"{self.program} cannot be run: {error.strerror}; {hint}") from error
        if done.returncode:
            text = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise Failure(f"{' '.join(command)} exited with {done.returncode}: {text}")
        return time.perf_counter() - start

    def where(self) -> list[str]:
        """The device options of run, bench and evaluate."""
        return (["--device", self.device] if self.device else []) + (
            ["--threads", str(self.threads)] if self.threads else [])

    def compile(self, model: Path, bundle: Path, dimensions: dict[str, int], options: Sequence[str] = ()) -> float:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        dims = [part for name, extent in dimensions.items() for part in ("--dim", f"{name}={extent}")]
        device = ["--device", self.device] if self.device else []
        return self.call("compile", model, "-o", bundle, "--force", *dims, *device, *options)

    def run(self, bundle: Path, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        folder = WORK / f"{bundle.stem}_arrays"
        folder.mkdir(parents=True, exist_ok=True)
        arguments: list[str] = []
        for index, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"input_{index}.npy", value)
            arguments += ["--input", f"{name}={folder / f'input_{index}.npy'}"]
        results = folder / "outputs"
        for name in outputs:  # an old output must not be taken for a new one
            (results / f"{file_name(name)}.npy").unlink(missing_ok=True)
        self.call("run", bundle, *arguments, "--output-dir", results, *self.where())
        return {name: np.load(results / f"{file_name(name)}.npy") for name in outputs}

    def bench(self, bundle: Path) -> dict[str, Any]:
        """What `hoist bench --json` writes: lower_quartile_ms and others of the bundle, and of each kernel."""
        result = WORK / f"{bundle.stem}_bench.json"
        self.call("bench", bundle, "--json", result, *self.where())
        return json.loads(result.read_text())

    def evaluate(self, bundle: Path, data: Path) -> dict[str, Any]:
        result = WORK / f"{bundle.stem}_evaluate.json"
        self.call("evaluate", bundle, "--data", data, "--json", result, *self.where())
        return json.loads(result.read_text())


def difference(got: Arrays, expected: Arrays, rtol: float = RTOL, atol: float = ATOL) -> str | None:
    """None where every output agrees, else a line that names the first output that does not."""
    for name, want in expected.items():
        have = got[name]
        if have.shape != want.shape:
            return f"{name} has shape {list(have.shape)}, onnxruntime's {list(want.shape)}"
        close = np.isclose(have, want, rtol=rtol, atol=atol, equal_nan=True)
        if not close.all():
            place = tuple(int(index) for index in np.argwhere(~close)[0])
            return (f"{name} differs at {int((~close).sum())} of {close.size} elements, first at {list(place)}: "
                    f"{have[place]} against {want[place]}")
    return None


def complain(what: str) -> None:
    print(f"error: {what}", file=sys.stderr)
