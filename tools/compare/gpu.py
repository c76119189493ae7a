"""Compares hoist's kernels on a GPU with cuBLAS and cuDNN (through PyTorch), fp32 without TF32. Development only.

    build/compare/bin/python tools/compare/gpu.py build FOLDER --profile PROFILE     where hoist is built
    python3 tools/compare/gpu.py measure FOLDER                                     where the GPU and PyTorch are

`build` writes a bundle per operator; `measure` loads each through its own C runtime, verifies it, compares its result
with PyTorch's, and times both, interleaved: OpenCL's profiling events for hoist, CUDA events for PyTorch, the lower quartile
of many launches each. The ratio is PyTorch's time over hoist's (above 1: hoist is faster). Other bundles in the folder,
made by `hoist compile --profile`, are verified and timed alone.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


class Operator:
    """A layer of two operands, each an input of the model or a weight."""

    def shapes(self) -> list[list[int]]:
        raise NotImplementedError

    def input_count(self) -> int:
        return 2

    def data(self) -> list[np.ndarray]:
        generator = np.random.default_rng(1)
        return [generator.standard_normal(shape).astype(np.float32) for shape in self.shapes()]


@dataclass(frozen=True)
class Gemm(Operator):
    rows: int
    inner: int
    columns: int

    def shapes(self) -> list[list[int]]:
        return [[self.rows, self.inner], [self.inner, self.columns]]

    def operations(self) -> int:
        return 2 * self.rows * self.inner * self.columns

    def node(self) -> tuple[str, dict[str, Any]]:
        return "MatMul", {}

    def result(self) -> list[int]:
        return [self.rows, self.columns]

    def reference(self, torch: Any, a: Any, b: Any) -> Any:
        return torch.matmul(a, b)


@dataclass(frozen=True)
class Convolution(Operator):
    batch: int
    extent: int
    inputs: int
    outputs: int
    kernel: int

    def shapes(self) -> list[list[int]]:
        picture = [self.batch, self.inputs, self.extent, self.extent]
        return [picture, [self.outputs, self.inputs, self.kernel, self.kernel]]

    def input_count(self) -> int:
        return 1

    def operations(self) -> int:
        return 2 * self.batch * self.extent**2 * self.inputs * self.outputs * self.kernel**2

    def node(self) -> tuple[str, dict[str, Any]]:
        return "Conv", {"pads": [self.kernel // 2] * 4}

    def result(self) -> list[int]:
        return [self.batch, self.outputs, self.extent, self.extent]

    def reference(self, torch: Any, picture: Any, filters: Any) -> Any:
        return torch.nn.functional.conv2d(picture, filters, padding=self.kernel // 2)


OPERATORS: dict[str, Gemm | Convolution] = {
    "gemm_4096": Gemm(4096, 4096, 4096),
    "gemm_1024": Gemm(1024, 1024, 1024),
    "gemm_128x4096x1000": Gemm(128, 4096, 1000),
    "conv3x3_b32_56x56x64_64": Convolution(32, 56, 64, 64, 3),
    "conv3x3_b32_28x28x128_128": Convolution(32, 28, 128, 128, 3),
    "conv3x3_b32_14x14x256_256": Convolution(32, 14, 256, 256, 3),
    "conv1x1_b32_28x28x512_128": Convolution(32, 28, 512, 128, 1),
}


def build(options: argparse.Namespace) -> None:
    import onnx
    from onnx import TensorProto, helper

    options.folder.mkdir(parents=True, exist_ok=True)
    for name, operator in OPERATORS.items():
        kind, attributes = operator.node()
        shapes = operator.shapes()[: operator.input_count()]
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip("ab", shapes)]
        weights = [onnx.numpy_helper.from_array(data, n) for n, data in zip("ab", operator.data())][len(inputs):]
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, operator.result())
        graph = helper.make_graph([helper.make_node(kind, ["a", "b"], ["y"], name=name, **attributes)], name, inputs,
                                  [output], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with tempfile.TemporaryDirectory() as work:
            path = Path(work) / f"{name}.onnx"
            onnx.save(model, path)
            subprocess.run([options.hoist, "compile", path, "-o", options.folder / f"{name}.hoist", "--profile",
                            options.profile], check=True)


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("scalar", ctypes.c_char_p), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Finding(ctypes.Structure):
    _fields_ = [("subject", ctypes.c_char_p), ("passed", ctypes.c_int), ("message", ctypes.c_char_p),
                ("compared", ctypes.c_uint64), ("largest_error", ctypes.c_double)]


REPORT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Finding))


class Bundle:
    """A bundle, used through the C runtime that it contains."""

    def __init__(self, folder: Path, library: ctypes.CDLL):
        self.library = library
        self.handle = ctypes.c_void_p()
        status = library.hoist_open(str(folder).encode(), None, ctypes.byref(self.handle))
        if status:
            raise RuntimeError(library.hoist_error_message(self.handle).decode())

    def check(self, status: int) -> None:
        if status:
            raise RuntimeError(self.library.hoist_error_message(self.handle).decode())

    def verify(self) -> tuple[int, list[str]]:
        """The number of checks, and the messages of the failing ones."""
        lines: list[tuple[bool, str]] = []

        def report(_: Any, finding: Any) -> None:
            f = finding.contents
            lines.append((bool(f.passed), f"{f.subject.decode()}: {f.message.decode()}"))

        self.library.hoist_verify(self.handle, REPORT(report), None)
        return len(lines), [line for passed, line in lines if not passed]

    def set_input(self, index: int, data: np.ndarray) -> None:
        data = np.ascontiguousarray(data)
        self.check(self.library.hoist_set_input(self.handle, ctypes.c_size_t(index), data.ctypes.data_as(ctypes.c_void_p),
                                                ctypes.c_size_t(data.nbytes)))

    def seed(self) -> None:
        self.check(self.library.hoist_seed_inputs(self.handle, ctypes.c_uint64(1)))

    def output(self, shape: list[int]) -> np.ndarray:
        data = np.empty(shape, np.float32)
        self.check(self.library.hoist_get_output(self.handle, ctypes.c_size_t(0), data.ctypes.data_as(ctypes.c_void_p),
                                                 ctypes.c_size_t(data.nbytes)))
        return data

    def run(self) -> None:
        self.check(self.library.hoist_run(self.handle))

    def step_seconds(self) -> np.ndarray:
        seconds = np.zeros(self.library.hoist_step_count(self.handle))
        self.check(self.library.hoist_profile(self.handle, seconds.ctypes.data_as(ctypes.c_void_p)))
        return seconds

    def close(self) -> None:
        self.library.hoist_close(self.handle)


def load_runtime(folder: Path, work: Path) -> ctypes.CDLL:
    library = work / "libhoist_runtime.so"
    if not library.exists():
        source = folder / "runtime" / "hoist_runtime.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-lOpenCL", *CC_OPTIONS], check=True)
    runtime = ctypes.CDLL(str(library))
    runtime.hoist_error_message.restype = ctypes.c_char_p
    runtime.hoist_step_count.restype = ctypes.c_size_t
    runtime.hoist_error_message.argtypes = runtime.hoist_step_count.argtypes = [ctypes.c_void_p]
    runtime.hoist_close.argtypes = runtime.hoist_run.argtypes = [ctypes.c_void_p]
    runtime.hoist_close.restype = None
    return runtime


CC_OPTIONS: list[str] = []


def lower_quartile(samples: list[float]) -> float:
    return float(np.quantile(samples, 0.25))


def measure_operator(bundle: Bundle, operator: Gemm | Convolution, rounds: int) -> str:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    operands = operator.data()
    on_device = [torch.from_numpy(operand).cuda() for operand in operands]
    for index, data in enumerate(operands[: operator.input_count()]):
        bundle.set_input(index, data)
    bundle.run()
    ours = bundle.output(operator.result())
    expected = operator.reference(torch, *on_device).cpu().numpy()
    error = float(np.max(np.abs(ours - expected)) / np.max(np.abs(expected)))
    if not error < 1e-4:
        return f"WRONG: relative difference {error:.2e}"
    hoist_times: list[float] = []
    their_times: list[float] = []
    for _ in range(rounds):
        hoist_times += [float(np.sum(bundle.step_seconds())) for _ in range(10)]
        for _ in range(10):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            operator.reference(torch, *on_device)
            end.record()
            torch.cuda.synchronize()
            their_times.append(begin.elapsed_time(end) / 1e3)
    hoist_time, their_time = lower_quartile(hoist_times), lower_quartile(their_times)
    work = operator.operations() / 1e12
    kernels = " ".join(f"{1e3 * s:.3f}" for s in bundle.step_seconds())
    return (f"hoist {1e3 * hoist_time:8.3f} ms {work / hoist_time:6.1f} TFLOP/s   PyTorch {1e3 * their_time:8.3f} ms "
            f"{work / their_time:6.1f} TFLOP/s   ratio {their_time / hoist_time:.2f}   error {error:.1e}   steps {kernels}")


def measure(options: argparse.Namespace) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for folder in sorted(options.folder.glob("*.hoist")):
            if options.only and options.only not in folder.name:
                continue
            try:
                bundle = Bundle(folder, load_runtime(folder, Path(work)))
                checks, faults = bundle.verify()
                name = folder.name.removesuffix(".hoist")
                line = f"{name:34} {checks - len(faults)} of {checks} checks"
                failed += len(faults) > 0
                if name in OPERATORS:
                    line += "   " + measure_operator(bundle, OPERATORS[name], options.rounds)
                else:
                    bundle.seed()
                    times = [float(np.sum(bundle.step_seconds())) for _ in range(10 * options.rounds)]
                    line += f"   {1e3 * lower_quartile(times):8.3f} ms on the device"
                print("\n    ".join([line, *faults[:3]]), flush=True)
                bundle.close()
            except RuntimeError as error:
                failed += 1
                print(f"{folder.name}: {error}", flush=True)
    return 1 if failed else 0


def main() -> int:
    program = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = program.add_subparsers(required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=Path)
    one.add_argument("--profile", type=Path, required=True, help="the GPU's, by `hoist devices --profile`")
    one.add_argument("--hoist", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/hoist")
    one.set_defaults(action=lambda options: build(options) or 0)
    two = commands.add_parser("measure")
    two.add_argument("folder", type=Path)
    two.add_argument("--rounds", type=int, default=5)
    two.add_argument("--only", help="only bundles whose names contain this")
    two.add_argument("--link", action="append", default=[], help="another option for cc, for example -L/path/of/libOpenCL")
    two.set_defaults(action=measure)
    options = program.parse_args()
    CC_OPTIONS.extend(getattr(options, "link", []))
    return options.action(options)


if __name__ == "__main__":
    sys.exit(main())
