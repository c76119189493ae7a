"""Shared by the comparison scripts: running the hoist program and its peers, and comparing their outputs.

Every peer is a class with a name, `run(inputs)`, which gives outputs by name, and `samples_ms(inputs, seconds)`, which
times single runs of the network alone. A peer that cannot load a model raises Failure in its constructor.
All use `threads` threads and arithmetic in f32 where the model has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ClassVar, Sequence

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
HOIST = ROOT / "build" / "release" / "hoist"
WORK = ROOT / "build" / "compare" / "work"
PYTHON = ROOT / "tools" / "python"
RTOL, ATOL = 1e-3, 1e-4

Arrays = dict[str, np.ndarray]


class Failure(Exception):
    """A program failed; the message has its name and its output."""


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def lower_quartile(samples: Sequence[float]) -> float:
    return float(np.percentile(samples, 25))


def file_name(value: str) -> str:
    """The name under which `hoist run` writes an output: characters outside A-Z a-z 0-9 _ . - become _."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", value)


def random_inputs(model: Path, dimensions: dict[str, int], seed: int = 1) -> Arrays:
    """Normally distributed numbers for float inputs, small non-negative ones for integers; unnamed and unlisted dimensions are 1."""
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


class Clock:
    """The clock of single runs: wall time, or processor time of all threads of this process, which other programs on the
    machine affect little."""

    now_ns: Callable[[], int] = staticmethod(time.perf_counter_ns)

    @classmethod
    def take_processor_time(cls) -> None:
        cls.now_ns = staticmethod(time.process_time_ns)


def samples_ms(run: Callable[[], object], seconds: float) -> list[float]:
    """Times of single runs, for about `seconds` after a warm-up of a fifth of that; at least ten of them."""
    end = time.perf_counter() + seconds / 5
    while time.perf_counter() < end:
        run()
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < 10 or time.perf_counter() < end:
        start = Clock.now_ns()
        run()
        samples.append((Clock.now_ns() - start) / 1e6)
    return samples


@dataclass
class OnnxRuntime:
    """A session with `threads` threads on the CPU provider, all optimisations on, as installed."""

    model: Path
    threads: int
    name: ClassVar[str] = "onnxruntime"

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
        """Inputs are bound once and outputs are kept in place."""
        binding = self.session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        for name, value in self.run(inputs).items():
            binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        return samples_ms(lambda: self.session.run_with_iobinding(binding), seconds)

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
class OpenVino:
    """A model compiled for the latency of one request; the shapes come from `inputs`."""

    model: Path
    threads: int
    inputs: Arrays
    name: ClassVar[str] = "openvino"

    def __post_init__(self) -> None:
        import openvino

        try:
            model = openvino.Core().read_model(self.model)
            model.reshape({name: list(value.shape) for name, value in self.inputs.items()})
            self.outputs = [output.get_any_name() for output in model.outputs]
            self.compiled = openvino.Core().compile_model(model, "CPU", {
                "INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
                "INFERENCE_PRECISION_HINT": "f32"})
        except Exception as error:  # the library raises RuntimeError and other errors
            raise Failure(f"openvino: {first_line(error)}") from error
        self.request = self.compiled.create_infer_request()

    def run(self, inputs: Arrays) -> Arrays:
        import openvino

        for name, value in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        self.request.infer()
        return {name: np.array(self.request.get_tensor(name).data) for name in self.outputs}

    def samples_ms(self, inputs: Arrays, seconds: float) -> list[float]:
        self.run(inputs)
        return samples_ms(self.request.infer, seconds)


@dataclass
class Ncnn:
    """The model as pnnx converts it, which knows no quantised ONNX; f32 storage and arithmetic. ncnn's arrays have no
    batch dimension, and its outputs no names: they come in the model's order."""

    model: Path
    threads: int
    inputs: Arrays
    name: ClassVar[str] = "ncnn"

    def __post_init__(self) -> None:
        import ncnn

        proto = onnx.load(self.model)
        if any("Quantize" in node.op_type for node in proto.graph.node):
            raise Failure("ncnn: pnnx does not convert quantised layers")
        if any(value.ndim > 1 and value.shape[0] != 1 for value in self.inputs.values()):
            raise Failure("ncnn: has no batch dimension")
        weights = {initializer.name for initializer in proto.graph.initializer}
        wanted = [value for value in proto.graph.input if value.name not in weights]
        del proto.graph.input[:]  # pnnx treats listed weights as inputs
        proto.graph.input.extend(wanted)
        self.order = [value.name for value in wanted]
        self.outputs = [value.name for value in proto.graph.output]
        folder = WORK / f"{self.model.stem}_ncnn"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(proto, folder / "model.onnx")
        shapes = ",".join(str(list(self.inputs[name].shape)).replace(" ", "") + TYPES_OF_PNNX[self.inputs[name].dtype.name]
                          for name in self.order)
        # The package's Python half needs PyTorch, its program does not.
        program = Path(importlib.util.find_spec("pnnx").submodule_search_locations[0]) / "pnnx"
        done = subprocess.run([program, "model.onnx", f"inputshape={shapes}"], cwd=folder, capture_output=True, text=True)
        if done.returncode or not (folder / "model.ncnn.bin").exists():
            raise Failure("ncnn: pnnx does not convert the model")
        self.net = ncnn.Net()
        self.net.opt.num_threads = self.threads
        self.net.opt.use_vulkan_compute = False
        for half in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
            setattr(self.net.opt, half, False)
        if self.net.load_param(str(folder / "model.ncnn.param")) or self.net.load_model(str(folder / "model.ncnn.bin")):
            raise Failure("ncnn: cannot load what pnnx wrote")
        self.make = ncnn.Mat

    def once(self, mats: list[Any]) -> list[Any]:
        with self.net.create_extractor() as extractor:
            for index, mat in enumerate(mats):
                extractor.input(f"in{index}", mat)
            found = [extractor.extract(f"out{index}") for index in range(len(self.outputs))]
        if any(code for code, _ in found):
            raise Failure("ncnn: a layer fails")
        return [mat for _, mat in found]

    def mats(self, inputs: Arrays) -> list[Any]:
        return [self.make(np.ascontiguousarray(inputs[name][0] if inputs[name].ndim > 1 else inputs[name])).clone()
                for name in self.order]

    def run(self, inputs: Arrays) -> Arrays:
        return dict(zip(self.outputs, map(np.array, self.once(self.mats(inputs)))))

    def samples_ms(self, inputs: Arrays, seconds: float) -> list[float]:
        mats = self.mats(inputs)
        return samples_ms(lambda: self.once(mats), seconds)


PEERS: dict[str, Callable[[Path, int, Arrays], Any]] = {
    "onnxruntime": lambda model, threads, inputs: OnnxRuntime(model, threads),
    "openvino": OpenVino,
    "ncnn": Ncnn,
}

TYPES_OF_PNNX = {"float32": "f32", "float64": "f64", "float16": "f16", "uint8": "u8", "int8": "i8", "int16": "i16",
                 "int32": "i32", "int64": "i64", "bool": "bool"}


def first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__


@dataclass
class Hoist:
    """The hoist program with the options of every call."""

    program: Path = HOIST
    device: str | None = None
    threads: int | None = None

    def call(self, *arguments: str | Path, environment: dict[str, str] | None = None, memory: bool = False) -> float:
        """Runs `hoist ARGUMENTS`; returns the seconds it took, or its peak memory in megabytes with `memory`. Raises
        Failure with its output unless it exits with 0."""
        command = [str(self.program), *map(str, arguments)]
        start = time.perf_counter()
        try:
            with tempfile.TemporaryFile("w+") as text:
                process = subprocess.Popen(command, stdout=text, stderr=subprocess.STDOUT, env=environment)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                text.seek(0)
                said = text.read().strip()[-2000:]
        except OSError as error:
            hint = "build it with tools/setup release"
            raise Failure(f"{self.program} cannot be run: {error.strerror}; {hint}") from error
        if process.returncode:
            raise Failure(f"{' '.join(command)} exited with {process.returncode}: {said}")
        return usage.ru_maxrss / 1024 if memory else time.perf_counter() - start

    def where(self) -> list[str]:
        """The device options of run, bench and evaluate."""
        return (["--device", self.device] if self.device else []) + (
            ["--threads", str(self.threads)] if self.threads else [])

    def compile(self, model: Path, bundle: Path, dimensions: dict[str, int], options: Sequence[str] = ()) -> float:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        dims = [part for name, extent in dimensions.items() for part in ("--dim", f"{name}={extent}")]
        device = ["--device", self.device] if self.device else []
        return self.call("compile", model, "-o", bundle, "--force", *dims, *device, *options)

    def first_load(self, bundle: Path) -> dict[str, Any]:
        """Load time and memory of a process without and of a process with cached kernels."""
        with tempfile.TemporaryDirectory() as caches:
            empty = {**os.environ, "XDG_CACHE_HOME": caches, "POCL_CACHE_DIR": f"{caches}/pocl"}
            found = {}
            for kind in ("cold", "warm"):
                result = Path(caches) / f"{kind}.json"
                memory = self.call("bench", bundle, "--seconds", "0.01", "--json", result, *self.where(),
                                   environment=empty, memory=True)
                found[kind] = {"load_ms": json.loads(result.read_text())["load_ms"], "memory_mb": memory}
        return found

    def run(self, bundle: Path, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        folder = WORK / f"{bundle.stem}_arrays"
        folder.mkdir(parents=True, exist_ok=True)
        arguments: list[str] = []
        for index, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"input_{index}.npy", value)
            arguments += ["--input", f"{name}={folder / f'input_{index}.npy'}"]
        results = folder / "outputs"
        for name in outputs:  # an old output must not be mistaken for a new one
            (results / f"{file_name(name)}.npy").unlink(missing_ok=True)
        self.call("run", bundle, *arguments, "--output-dir", results, *self.where())
        return {name: np.load(results / f"{file_name(name)}.npy") for name in outputs}

    def bench(self, bundle: Path, seconds: float = 2.0) -> dict[str, Any]:
        """The output of `hoist bench --json`: lower_quartile_ms and others of the bundle and of each kernel."""
        result = WORK / f"{bundle.stem}_bench.json"
        self.call("bench", bundle, "--seconds", str(seconds), "--json", result, *self.where())
        return json.loads(result.read_text())

    def samples_ms(self, bundle: Path, inputs: Arrays, seconds: float) -> list[float]:
        """Single runs inside this process, timed by the same clock as the peers."""
        if str(PYTHON) not in sys.path:
            sys.path.insert(0, str(PYTHON))
        import hoist_runtime

        with hoist_runtime.open(bundle, device=self.device, threads=self.threads or 0) as opened:
            for name, value in inputs.items():
                opened.set_input(name, value)
            run, pointer = opened._library.hoist_run, opened._handle.pointer
            return samples_ms(lambda: run(pointer), seconds)

    def evaluate(self, bundle: Path, data: Path) -> dict[str, Any]:
        result = WORK / f"{bundle.stem}_evaluate.json"
        self.call("evaluate", bundle, "--data", data, "--json", result, *self.where())
        return json.loads(result.read_text())


def difference(got: Arrays, expected: Arrays, rtol: float = RTOL, atol: float = ATOL) -> str | None:
    """None if every output agrees, else a line that names the first differing output."""
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


def first_load(peer: str, model: Path, threads: int, inputs: Arrays) -> dict[str, float]:
    """Load time and memory of the peer in a separate process, without Python and its arrays."""
    WORK.mkdir(parents=True, exist_ok=True)
    arrays = WORK / "first_load.npz"
    np.savez(arrays, **inputs)
    done = subprocess.run([sys.executable, __file__, peer, str(model), str(threads), str(arrays)], capture_output=True,
                          text=True)
    if done.returncode:
        raise Failure(f"{peer}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def complain(what: str) -> None:
    print(f"error: {what}", file=sys.stderr)


def main() -> None:
    peer, model, threads, arrays = sys.argv[1:]
    inputs = dict(np.load(arrays))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    engine = PEERS[peer](Path(model), int(threads), inputs)
    load = (time.perf_counter() - start) * 1e3
    engine.run(inputs)
    print(json.dumps({"load_ms": load,
                      "memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) / 1024}))


if __name__ == "__main__":
    main()
