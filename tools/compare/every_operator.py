"""Compares every operator on tensors of 1 MB with onnxruntime, to find slow ones. Development only.

    build/compare/bin/python tools/compare/every_operator.py [--only TEXT]... [--with-peer] [--seconds 0.3] [--rounds 1]
        [--processor-time] [--json FILE]

Each case is a model of one node whose first input has a megabyte, unless the operator calls for another size. hoist
compiles it for the first OpenCL device and, as native code, for this processor; the table has the lower quartile of many
runs and the ratio to onnxruntime's. An operator that is more than --most times slower (5) is marked with an exclamation mark
and makes the exit code 1. Operators that onnxruntime lacks have no ratio. Measure on a quiet machine, or by the processor
time of one core.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import onnx
import onnxruntime

from engines import HOIST, WORK, Arrays, Clock, Failure, Hoist, OnnxRuntime, cores, lower_quartile

F16, F32, F64, BOOL = np.float16, np.float32, np.float64, np.bool_
I8, U8, I16, I32, I64 = np.int8, np.uint8, np.int16, np.int32, np.int64
OPSETS = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("ai.onnx.ml", 3),
          onnx.helper.make_opsetid("com.microsoft", 1)]
SQUARE = (512, 512)
PICTURE = (1, 64, 64, 64)
random = np.random.default_rng(1)


@dataclass
class Case:
    operator: str
    inputs: list[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    results: int = 1
    kind: Any = None  # numpy's type of the results; None: that of the first input
    fixed: tuple[int, ...] = ()  # inputs that are constants of the model
    title: str = ""
    domain: str = ""

    def name(self) -> str:
        return f"{self.operator}{' ' + self.title if self.title else ''}"

    def model(self) -> onnx.ModelProto:
        names = ["" if value is None else f"x{place}" for place, value in enumerate(self.inputs)]
        outputs = [f"y{place}" for place in range(self.results)]
        node = onnx.helper.make_node(self.operator, names, outputs, name="node", domain=self.domain, **self.attributes)
        given = self.given()
        kinds = self.kind if isinstance(self.kind, list) else [self.kind] * self.results
        first = next(value for value in self.inputs if value is not None) if self.inputs else np.zeros(1, F32)
        graph = onnx.helper.make_graph(
            [node], "case", [information(name, value.dtype, value.shape) for name, value in given.items()],
            [information(name, kind or first.dtype, None) for name, kind in zip(outputs, kinds)],
            [onnx.numpy_helper.from_array(self.inputs[place], f"x{place}") for place in self.fixed])
        return onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=10)

    def given(self) -> Arrays:
        return {f"x{place}": value for place, value in enumerate(self.inputs)
                if value is not None and place not in self.fixed}


def information(name: str, kind: Any, shape: Any) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(F32)


def uniform(low: float, high: float, *shape: int) -> np.ndarray:
    return random.uniform(low, high, shape).astype(F32)


def whole(high: int, *shape: int, kind: Any = I32) -> np.ndarray:
    return random.integers(0, high, shape).astype(kind)


def numbers(*values: float, kind: Any = I64) -> np.ndarray:
    return np.array(values, kind)


def elementwise() -> Iterator[Case]:
    for name in ("Abs", "Asinh", "Atan", "Ceil", "Celu", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
                 "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid",
                 "Sign", "Sin", "Softplus", "Softsign", "Tanh", "ThresholdedRelu", "Shrink"):
        yield Case(name, [normal(*SQUARE)])
    for name in ("Acos", "Asin", "Atanh", "Cosh", "Sinh", "Tan"):
        yield Case(name, [uniform(-0.9, 0.9, *SQUARE)])
    for name in ("Log", "Sqrt"):
        yield Case(name, [uniform(0.1, 4, *SQUARE)])
    yield Case("Acosh", [uniform(1.1, 4, *SQUARE)])
    for name in ("IsInf", "IsNaN"):
        yield Case(name, [normal(*SQUARE)], kind=BOOL)
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum"):
        yield Case(name, [normal(*SQUARE), normal(*SQUARE)])
    for name in ("Add", "Div"):
        yield Case(name, [whole(1000, *SQUARE), whole(1000, *SQUARE) + 1], title="i32")
    yield Case("Pow", [uniform(0.1, 3, *SQUARE), uniform(-2, 2, *SQUARE)])
    yield Case("Mod", [whole(1000, *SQUARE), whole(100, *SQUARE) + 1])
    yield Case("Mod", [normal(*SQUARE), uniform(0.5, 2, *SQUARE)], {"fmod": 1}, title="fmod")
    yield Case("PRelu", [normal(*SQUARE), normal(512)])
    for name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        yield Case(name, [normal(*SQUARE), normal(*SQUARE)], kind=BOOL)
    for name in ("And", "Or", "Xor"):
        yield Case(name, [whole(2, 1024, 1024, kind=BOOL), whole(2, 1024, 1024, kind=BOOL)])
    yield Case("Not", [whole(2, 1024, 1024, kind=BOOL)])
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Case(name, [whole(1 << 20, *SQUARE), whole(1 << 20, *SQUARE)])
    yield Case("BitwiseNot", [whole(1 << 20, *SQUARE)])
    yield Case("BitShift", [whole(1 << 20, *SQUARE, kind=np.uint32), whole(8, *SQUARE, kind=np.uint32)],
               {"direction": "LEFT"})
    yield Case("Clip", [normal(*SQUARE), numbers(-1, kind=F32)[0], numbers(1, kind=F32)[0]], fixed=(1, 2))
    yield Case("Where", [whole(2, *SQUARE, kind=BOOL), normal(*SQUARE), normal(*SQUARE)], kind=F32)
    for kind, title in ((I32, "to i32"), (F64, "to f64"), (np.float16, "to f16"), (U8, "to u8"), (BOOL, "to bool")):
        yield Case("Cast", [normal(*SQUARE)], {"to": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))}, kind=kind,
                   title=title)
    yield Case("Dropout", [normal(*SQUARE)])


def reductions() -> Iterator[Case]:
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                 "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"):
        for axis in (0, 1):
            yield Case(name, [uniform(0.5, 1.5, *SQUARE), numbers(axis)], fixed=(1,), title=f"axis {axis}")
    yield Case("ReduceSum", [normal(1 << 18), numbers(0)], fixed=(1,), title="whole")
    yield Case("ReduceMax", [normal(1 << 18), numbers(0)], fixed=(1,), title="whole")
    for name in ("ArgMax", "ArgMin"):
        for axis in (0, 1):
            yield Case(name, [normal(*SQUARE)], {"axis": axis}, kind=I64, title=f"axis {axis}")
    yield Case("ArgMax", [normal(1 << 18)], {"axis": 0}, kind=I64, title="whole")
    for shape, axis in ((SQUARE, 0), (SQUARE, 1), ((4, 65536), 1), ((1 << 18,), 0)):
        title = "x".join(map(str, shape)) + f" axis {axis}"
        yield Case("CumSum", [normal(*shape), numbers(axis)[0]], fixed=(1,), title=title)
    yield Case("CumSum", [whole(9, 1 << 18), numbers(0)[0]], fixed=(1,), title="i32 whole")
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (0, 1):
            yield Case(name, [normal(*SQUARE)], {"axis": axis}, title=f"axis {axis}")
    yield Case("Softmax", [normal(1 << 18)], {"axis": 0}, title="whole")
    for axis in (0, 1):
        yield Case("LpNormalization", [normal(*SQUARE)], {"axis": axis}, title=f"axis {axis}")
    yield Case("LayerNormalization", [normal(*SQUARE), normal(512), normal(512)])
    channels = [uniform(0.5, 1, 64) for _ in range(4)]
    yield Case("BatchNormalization", [normal(*PICTURE), *channels], fixed=(1, 2, 3, 4))
    yield Case("InstanceNormalization", [normal(*PICTURE), *channels[:2]], fixed=(1, 2))
    yield Case("GroupNormalization", [normal(*PICTURE), *channels[:2]], {"num_groups": 8}, fixed=(1, 2))
    yield Case("MeanVarianceNormalization", [normal(*PICTURE)])
    yield Case("LRN", [normal(*PICTURE)], {"size": 5})


def movement() -> Iterator[Case]:
    yield Case("Transpose", [normal(*SQUARE)])
    yield Case("Transpose", [normal(*PICTURE)], {"perm": [0, 2, 3, 1]}, title="to NHWC")
    yield Case("Reshape", [normal(*SQUARE), numbers(1024, 256)], fixed=(1,))
    yield Case("Flatten", [normal(*PICTURE)])
    yield Case("Squeeze", [normal(*PICTURE), numbers(0)], fixed=(1,))
    yield Case("Unsqueeze", [normal(*SQUARE), numbers(0)], fixed=(1,))
    for axis in (0, 1):
        yield Case("Concat", [normal(256, 512), normal(256, 512)], {"axis": axis}, title=f"axis {axis}")
        yield Case("Split", [normal(*SQUARE)], {"axis": axis, "num_outputs": 2}, results=2, title=f"axis {axis}")
    yield Case("Slice", [normal(*SQUARE), numbers(3, 5), numbers(500, 509)], fixed=(1, 2))
    yield Case("Slice", [normal(*SQUARE), numbers(511), numbers(-513), numbers(1), numbers(-1)], fixed=(1, 2, 3, 4),
               title="reversed")
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield Case("Pad", [normal(*PICTURE), numbers(0, 0, 2, 2, 0, 0, 2, 2)], {"mode": mode}, fixed=(1,), title=mode)
    yield Case("Tile", [normal(256, 256), numbers(2, 2)], fixed=(1,))
    yield Case("Expand", [normal(1, 512), numbers(512, 512)], fixed=(1,))
    yield Case("Gather", [normal(*SQUARE), whole(512, 512, kind=I64)], {"axis": 0}, title="axis 0")
    yield Case("Gather", [normal(*SQUARE), whole(512, 512, kind=I64)], {"axis": 1}, title="axis 1")
    yield Case("GatherElements", [normal(*SQUARE), whole(512, *SQUARE, kind=I64)], {"axis": 1})
    yield Case("GatherND", [normal(*SQUARE), whole(512, 4096, 2, kind=I64)])
    yield Case("ScatterElements", [normal(*SQUARE), whole(512, 64, 512, kind=I64), normal(64, 512)], {"axis": 0})
    yield Case("ScatterElements", [normal(*SQUARE), whole(512, 512, 64, kind=I64), normal(512, 64)],
               {"axis": 1, "reduction": "add"}, title="add")
    yield Case("ScatterND", [normal(1 << 18), whole(1 << 18, 4096, 1, kind=I64), normal(4096)], {"reduction": "add"},
               title="add")
    places = np.stack([random.permutation(512)[:256]], -1).astype(I64)
    yield Case("ScatterND", [normal(*SQUARE), places, normal(256, 512)])
    for name in ("DepthToSpace", "SpaceToDepth"):
        yield Case(name, [normal(*PICTURE)], {"blocksize": 2})
    yield Case("OneHot", [whole(512, 512, kind=I64), numbers(512)[0], numbers(0, 1, kind=F32)], kind=F32, fixed=(1, 2))
    yield Case("Trilu", [normal(*SQUARE)])
    yield Case("EyeLike", [normal(*SQUARE)])
    yield Case("ReverseSequence", [normal(*SQUARE), whole(512, 512, kind=I64) + 1])
    yield Case("Compress", [normal(*SQUARE), whole(2, 512, kind=BOOL)], {"axis": 0})
    yield Case("NonZero", [whole(2, *SQUARE, kind=F32)], kind=I64)
    yield Case("Unique", [whole(1000, 4096, kind=F32)], title="4096")
    yield Case("TopK", [normal(*SQUARE), numbers(8)], results=2, kind=[F32, I64], fixed=(1,), title="8 of 512")
    yield Case("TopK", [normal(1 << 16), numbers(16)], results=2, kind=[F32, I64], fixed=(1,), title="16 of 65536")
    yield Case("CenterCropPad", [normal(*SQUARE), numbers(500, 520)], fixed=(1,))
    yield Case("Col2Im", [normal(1, 9 * 16, 4096), numbers(64, 64), numbers(3, 3)], {"pads": [1, 1, 1, 1]}, fixed=(1, 2))


def windows() -> Iterator[Case]:
    for name in ("MaxPool", "AveragePool", "LpPool"):
        yield Case(name, [normal(*PICTURE)], {"kernel_shape": [3, 3], "strides": [2, 2]})
        yield Case(name, [normal(*PICTURE)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, title="stride 1")
    yield Case("MaxPool", [normal(*PICTURE)], {"kernel_shape": [2, 2], "strides": [2, 2]}, results=2, kind=[F32, I64],
               title="with places")
    for name in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        yield Case(name, [normal(*PICTURE)])
    flat = np.arange(64 * 32 * 32, dtype=I64).reshape(1, 64, 32, 32) * 4
    yield Case("MaxUnpool", [normal(1, 64, 32, 32), flat], {"kernel_shape": [2, 2], "strides": [2, 2]})
    rois = np.array([[0, 0, 40, 40], [5, 5, 60, 60], [10, 20, 30, 50], [2, 2, 63, 63]], F32)
    yield Case("RoiAlign", [normal(*PICTURE), rois, np.zeros(4, I64)], 
               {"output_height": 7, "output_width": 7, "sampling_ratio": 2})
    yield Case("RoiAlign", [normal(*PICTURE), rois, np.zeros(4, I64)], {"output_height": 7, "output_width": 7},
               title="as many samples as regions are large")
    yield Case("MaxRoiPool", [normal(*PICTURE), np.concatenate([np.zeros((4, 1), F32), rois], 1)],
               {"pooled_shape": [7, 7]})
    for mode in ("nearest", "linear", "cubic"):
        yield Case("Resize", [normal(1, 16, 64, 64), None, numbers(1, 1, 2, 2, kind=F32)], {"mode": mode}, fixed=(2,),
                   title=mode)
    grid = random.uniform(-1, 1, (1, 64, 64, 2)).astype(F32)
    for mode in ("linear", "nearest", "cubic"):
        yield Case("GridSample", [normal(*PICTURE), grid], {"mode": mode}, title=mode)
    yield Case("AffineGrid", [normal(1, 2, 3), numbers(1, 1, 512, 256)], fixed=(1,))
    yield Case("Conv", [normal(*PICTURE), normal(64, 64, 3, 3)], {"pads": [1, 1, 1, 1]}, fixed=(1,))
    yield Case("Conv", [normal(*PICTURE), normal(64, 1, 3, 3)], {"pads": [1, 1, 1, 1], "group": 64}, fixed=(1,),
               title="depthwise")
    yield Case("ConvTranspose", [normal(1, 64, 32, 32), normal(64, 64, 2, 2)], {"strides": [2, 2]}, fixed=(1,))
    yield Case("DeformConv", [normal(1, 16, 32, 32), normal(16, 16, 3, 3), normal(1, 18, 32, 32)],
               {"pads": [1, 1, 1, 1]}, title="16x32x32")


def products() -> Iterator[Case]:
    yield Case("MatMul", [normal(*SQUARE), normal(*SQUARE)])
    yield Case("MatMul", [normal(*SQUARE), normal(*SQUARE)], fixed=(1,), title="constant")
    yield Case("Gemm", [normal(*SQUARE), normal(*SQUARE), normal(512)], {"transB": 1}, fixed=(1, 2))
    yield Case("Einsum", [normal(8, 128, 256), normal(8, 256, 128)], {"equation": "bij,bjk->bik"})
    yield Case("Det", [normal(256, 8, 8)], title="8x8")
    a, b = whole(255, *SQUARE, kind=U8), whole(127, *SQUARE, kind=I8)
    yield Case("MatMulInteger", [a, b], kind=I32, fixed=(1,))
    scale, zero, signed = np.array(0.01, F32), np.array(128, U8), np.array(0, I8)
    yield Case("QLinearMatMul", [a, scale, zero, b, scale, signed, np.array(0.1, F32), zero],
               fixed=(1, 2, 3, 4, 5, 6, 7))
    picture, filters = whole(255, *PICTURE, kind=U8), whole(127, 64, 64, 3, 3, kind=I8)
    yield Case("ConvInteger", [picture, filters], {"pads": [1, 1, 1, 1]}, kind=I32, fixed=(1,))
    yield Case("QLinearConv", [picture, scale, zero, filters, scale, signed, np.array(0.1, F32), zero],
               {"pads": [1, 1, 1, 1]}, fixed=(1, 2, 3, 4, 5, 6, 7))
    yield Case("QuantizeLinear", [normal(*SQUARE), scale, zero], kind=U8, fixed=(1, 2))
    yield Case("DequantizeLinear", [whole(255, 1024, 1024, kind=U8), scale, zero], kind=F32, fixed=(1, 2))
    yield Case("DynamicQuantizeLinear", [normal(*SQUARE)], results=3, kind=[U8, F32, U8])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}
    for name, count in gates.items():
        yield Case(name, [normal(32, 4, 64), normal(1, 64 * count, 64), normal(1, 64 * count, 64)],
                   {"hidden_size": 64}, fixed=(1, 2), title="32 steps of 4 kB")
        yield Case(name, [normal(32, 32, 256), normal(1, 256 * count, 256), normal(1, 256 * count, 256)],
                   {"hidden_size": 256}, fixed=(1, 2), title="32 steps")


def others() -> Iterator[Case]:
    yield Case("DFT", [normal(64, 256, 1)], {}, title="256")
    yield Case("STFT", [normal(1, 16384, 1), numbers(64)[0], None, numbers(128)[0]], fixed=(1, 3), title="128 of 16384")
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield Case(name, [numbers(1 << 18)[0]], kind=F32, fixed=(0,))
    yield Case("NegativeLogLikelihoodLoss", [normal(512, 512), whole(512, 512, kind=I64)], kind=F32)
    yield Case("SoftmaxCrossEntropyLoss", [normal(512, 512), whole(512, 512, kind=I64)], kind=F32)
    limits = [numbers(50), np.array([0.5], F32), np.array([0.0], F32)]
    for count, classes in ((256, 1), (8192, 1), (2048, 20)):
        corners = random.uniform(0, 1, (1, count, 2)).astype(F32)
        scores = random.uniform(0, 1, (1, classes, count)).astype(F32)
        yield Case("NonMaxSuppression", [np.concatenate([corners, corners + 0.1], -1), scores, *limits], kind=I64,
                   fixed=(2, 3, 4), title=f"{count} boxes" + (f" of {classes} classes" if classes > 1 else ""))
    yield Case("Shape", [normal(*SQUARE)], kind=I64)
    yield Case("Size", [normal(*SQUARE)], kind=I64)
    for name in ("Scaler", "Normalizer", "Binarizer", "Imputer"):
        attributes = {"Scaler": {"offset": [0.5], "scale": [2.0]}, "Normalizer": {"norm": "L2"},
                      "Binarizer": {"threshold": 0.1}, "Imputer": {"imputed_value_floats": [1.0]}}[name]
        yield Case(name, [normal(*SQUARE)], attributes, domain="ai.onnx.ml")
    vectors, pairs = 64, 3
    machine = {"kernel_type": "RBF", "kernel_params": [0.01, 0.0, 3.0], "rho": normal(pairs).tolist(),
               "support_vectors": normal(vectors * 512).tolist()}
    yield Case("SVMRegressor", [normal(*SQUARE)],
               machine | {"n_supports": vectors, "coefficients": normal(vectors).tolist(), "rho": [0.5]},
               domain="ai.onnx.ml")
    classifier = machine | {"coefficients": normal(2 * vectors).tolist(), "vectors_per_class": [20, 30, 14],
                            "classlabels_ints": [0, 1, 2]}
    probabilities = {"prob_a": [-1.0] * pairs, "prob_b": [0.0] * pairs}
    for title, attributes in (("votes", {}), ("probabilities", probabilities)):
        yield Case("SVMClassifier", [normal(*SQUARE)], classifier | attributes, results=2, kind=[I64, F32],
                   domain="ai.onnx.ml", title=title)
    yield Case("FastGelu", [normal(*SQUARE)], domain="com.microsoft")
    yield Case("SkipLayerNormalization", [normal(1, 512, 512), normal(1, 512, 512), normal(512), normal(512)],
               domain="com.microsoft")


def of_other_types() -> Iterator[Case]:
    """Elementwise operators, reductions, movements and windows in types other than f32, each on a megabyte."""
    for kind in (F16, F64, I64, I32, I16, I8, U8, BOOL):
        columns = (1 << 20) // (512 * np.dtype(kind).itemsize)
        title = np.dtype(kind).name

        def values(*shape: int) -> np.ndarray:
            return whole(2 if kind == BOOL else 100, *shape, kind=kind)

        def case(operator: str, inputs: list[np.ndarray | None], attributes: dict[str, Any] | None = None,
                 more: str = "", **rest: Any) -> Case:
            return Case(operator, inputs, attributes or {}, **{"kind": kind, **rest}, title=f"{title} {more}".strip())

        x, y, picture = values(512, columns), values(512, columns), values(1, 64, 64, columns // 8)
        places = whole(512, 512, kind=I64)
        if kind != BOOL:
            for name in ("Abs", "Neg", "Sign", "Relu"):
                yield case(name, [x])
            for name in ("Add", "Mul", "Div", "Mod", "Max", "Pow"):
                fmod = {"fmod": 1} if name == "Mod" and np.issubdtype(kind, np.floating) else {}
                yield case(name, [x, np.maximum(y, kind(1))], fmod)
            yield case("Less", [x, y], kind=BOOL)
            yield case("Clip", [x, numbers(3, kind=kind)[0], numbers(50, kind=kind)[0]], fixed=(1, 2))
            for axis in (0, 1):
                for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd"):
                    yield case(name, [x, numbers(axis)], fixed=(1,), more=f"axis {axis}")
                yield case("ArgMax", [x], {"axis": axis}, kind=I64, more=f"axis {axis}")
                yield case("CumSum", [x, numbers(axis)[0]], fixed=(1,), more=f"axis {axis}")
            yield case("TopK", [x, numbers(8)], results=2, kind=[kind, I64], fixed=(1,), more="8 of each row")
            for name in ("MaxPool", "AveragePool"):
                yield case(name, [picture], {"kernel_shape": [3, 3], "strides": [2, 2]})
                yield case(name, [picture], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, "stride 1")
        for other in (F32, kind):
            source = x if other == F32 else whole(2, 512, columns, kind=F32)
            yield Case("Cast", [source], {"to": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(other))}, kind=other,
                       title=f"{source.dtype.name} to {np.dtype(other).name}")
        yield case("Equal", [x, y], kind=BOOL)
        yield case("Where", [whole(2, 512, columns, kind=BOOL), x, y])
        yield case("Transpose", [x])
        yield case("Transpose", [picture], {"perm": [0, 2, 3, 1]}, "to NHWC")
        for axis in (0, 1):
            yield case("Concat", [x, y], {"axis": axis}, f"axis {axis}")
            yield case("Gather", [x, places], {"axis": axis}, f"axis {axis}")
        yield case("Slice", [x, numbers(3, 5), numbers(500, columns - 3)], fixed=(1, 2))
        yield case("Pad", [picture, numbers(0, 0, 2, 2, 0, 0, 2, 2)], fixed=(1,))
        yield case("Expand", [values(1, columns), numbers(512, columns)], fixed=(1,))
        yield case("Tile", [values(256, columns // 2), numbers(2, 2)], fixed=(1,))
        yield case("GatherElements", [x, whole(columns, 512, columns // 4, kind=I64)], {"axis": 1})
        yield case("ScatterElements", [x, whole(512, 64, columns, kind=I64), y[:64]], {"axis": 0})
        yield case("ScatterND", [x, np.stack([random.permutation(512)[:256]], -1).astype(I64), y[:256]])
        yield case("DepthToSpace", [picture], {"blocksize": 2})
        yield case("Trilu", [x])
        yield case("NonZero", [x], kind=I64)


CASES = [case for family in (elementwise, reductions, movement, windows, products, others, of_other_types)
         for case in family()]


@dataclass
class Result:
    name: str
    onnxruntime: float | None = None
    opencl: float | None = None
    native: float | None = None
    problems: list[str] = field(default_factory=list)

    def ratio(self) -> float | None:
        times = [time for time in (self.opencl, self.native) if time is not None]
        return max(times) / self.onnxruntime if times and self.onnxruntime else None


def measure(case: Case, options: argparse.Namespace) -> Result:
    result = Result(case.name())
    stem = "".join(c if c.isalnum() else "_" for c in case.name())
    path = WORK / "every_operator" / f"{stem}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model(), path)
    engines: dict[str, Callable[[], float]] = {}
    try:
        peer = OnnxRuntime(path, cores())
        engines["onnxruntime"] = lambda: lower_quartile(peer.samples_ms(case.given(), options.seconds))
        result.onnxruntime = engines["onnxruntime"]()
    except Exception as error:  # the library's own classes
        engines.clear()
        result.problems.append("onnxruntime: " + str(error).splitlines()[0][:120])
        if options.with_peer:
            return result
    hoist = Hoist(options.hoist, threads=1 if options.processor_time else None)
    for target in ("opencl", "native"):
        bundle = path.with_suffix(f".{target}.hoist")
        try:
            hoist.compile(path, bundle, {}, ["--no-check", *(["--target", "native"] if target == "native" else [])])
        except Failure as failure:
            result.problems.append(f"{target}: {str(failure).splitlines()[-1][-160:]}")
            continue
        engines[target] = functools.partial(time_of, hoist, bundle, case, options)
    times: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for engine, measured in engines.items():
            try:
                times.setdefault(engine, []).append(measured())
            except Exception as failure:  # one engine's error is a line of the table
                result.problems.append(f"{engine}: {str(failure).splitlines()[-1][-160:]}")
    for engine, found in times.items():
        setattr(result, engine, float(np.median(found)) if found else None)
    return result


def time_of(hoist: Hoist, bundle: Path, case: Case, options: argparse.Namespace) -> float:
    if options.processor_time:
        return lower_quartile(hoist.samples_ms(bundle, case.given(), options.seconds))
    return hoist.bench(bundle, options.seconds)["lower_quartile_ms"]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> int:
    program = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    program.add_argument("--hoist", type=Path, default=HOIST, help="the program, build/release/hoist")
    program.add_argument("--only", action="append", metavar="TEXT", help="only cases whose names contain this; may be repeated")
    program.add_argument("--with-peer", action="store_true", help="leave out cases for which onnxruntime has no kernel")
    program.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    program.add_argument("--rounds", type=int, default=1, help="number of interleaved rounds; the median counts")
    program.add_argument("--processor-time", action="store_true",
                         help="one thread of each engine on one core, timed by the processor's time: on busy machines")
    program.add_argument("--most", type=float, default=5, help="limit of the ratio to onnxruntime's time")
    program.add_argument("--json", type=Path, help="write the results there too")
    options = program.parse_args()
    onnxruntime.set_default_logger_severity(4)
    if options.processor_time:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        Clock.take_processor_time()
    print(f"{cores()} threads, load average " + " ".join(f"{average:.2f}" for average in os.getloadavg()))
    print(f"{'':34}{'onnxruntime ms':>15}{'OpenCL ms':>12}{'native ms':>12}{'ratio':>9}", flush=True)
    results = []
    for case in CASES:
        if options.only and not any(text in case.name() for text in options.only):
            continue
        result = measure(case, options)
        results.append(result)
        ratio = result.ratio()
        mark = " !" if ratio and ratio > options.most else ""
        print(f"{result.name:34}{number(result.onnxruntime):>15}{number(result.opencl):>12}{number(result.native):>12}"
              f"{'-' if ratio is None else f'{ratio:.2f}':>9}{mark}", flush=True)
        for problem in result.problems:
            print(f"    {problem}", flush=True)
    ratios = [ratio for result in results if (ratio := result.ratio())]
    slow = [result.name for result in results if (result.ratio() or 0) > options.most]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"the slower of both over onnxruntime, {len(ratios)} cases: geometric mean {mean:.2f}, largest "
              f"{max(ratios):.2f}, {len(slow)} above {options.most:g}: {', '.join(slow) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps([{**vars(result), "ratio": result.ratio()} for result in results], indent=2)
                                + "\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
