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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
import onnx.reference

import fuzz
from engines import HOIST, WORK

FOLDER = WORK / "versions"
NEWEST = 28
Array = np.ndarray
F16, F32, F64, I8, U8, I32, I64 = np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64
TYPE_NAMES = {F32: "FLOAT", F64: "DOUBLE", F16: "FLOAT16", I32: "INT32", I64: "INT64", U8: "UINT8", I8: "INT8",
              np.bool_: "BOOL"}


@dataclass
class Case:
    operation: str
    opset: int
    inputs: list[Array | None]
    attributes: dict[str, Any]
    outputs: list[Array | None]
    fixed: tuple[int, ...] = ()  # operands that have to be known: shapes, axes
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def expected(self) -> list[Array]:
        return [np.asarray(value) for value in self.outputs if value is not None]


class Random:
    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.generator.random() < share)

    def pick(self, values: Any) -> Any:
        return values[self.integer(0, len(values) - 1)]

    def shape(self, low: int = 1, high: int = 4, most: int = 5) -> tuple[int, ...]:
        return tuple(self.integer(1, most) for _ in range(self.integer(low, high)))

    def array(self, kind: Any, *shape: int, low: float = -4, high: float = 4) -> Array:
        """Multiples of 1/8, which every type of float holds."""
        if kind == np.bool_:
            return self.generator.integers(0, 2, shape).astype(np.bool_)
        if np.issubdtype(kind, np.integer):
            low = max(low, np.iinfo(kind).min)
            return self.generator.integers(int(low), int(high) + 1, shape).astype(kind)
        return (self.generator.integers(int(low * 8), int(high * 8) + 1, shape) / 8).astype(kind)


Maker = Callable[[Random, int], "Case | None"]
MAKERS: dict[str, tuple[list[int], Maker]] = {}


def versions(names: str, *since: int) -> Callable[[Callable[[Random, int, str], Any]], Any]:
    """A maker of cases of these operators; `since` are versions of different meaning, the opset is any from the first on."""
    def add(make: Callable[[Random, int, str], Any]) -> Any:
        for name in names.split():
            MAKERS[name] = (list(since), lambda r, opset, name=name: make(r, opset, name))
        return make
    return add


def reference(operation: str, opset: int, inputs: list[Array | None], attributes: dict[str, Any], results: int = 1) -> Any:
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    node = onnx.helper.make_node(operation, names, [f"y{i}" for i in range(results)], **attributes)
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in names if n],
                                   [onnx.helper.make_value_info(f"y{i}", onnx.TypeProto()) for i in range(results)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    return onnx.reference.ReferenceEvaluator(model).run(None, {n: v for n, v in zip(names, inputs) if n})


# ---- Definitions -------------------------------------------------------------------------------------------------------

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "And": np.logical_and,
    "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal, "Greater": np.greater, "Less": np.less}


@versions("Add Sub Mul Div Pow And Or Xor Equal Greater Less", 1, 7)
def arithmetic(r: Random, opset: int, name: str) -> Case:
    # "The starting of the mutually equal shape is specified by the argument axis, and if it is not set, suffix matching is
    # assumed. 1-dim expansion doesn't work yet."
    if name in ("And", "Or", "Xor"):
        kind = np.bool_
    elif name == "Equal":
        kind = r.pick([np.bool_, I32, I64])
    else:
        kind = r.pick([F32, F32, F64, F16])
        if opset >= 7 and name in ("Add", "Sub", "Mul") or opset == 6 and name in ("Add", "Sub", "Mul"):
            kind = r.pick([kind, I32, I64])
    shape = r.shape(1, 4)
    low = 0.5 if name in ("Div", "Pow") else -4
    a = r.array(kind, *shape, low=low, high=3)
    attributes: dict[str, Any] = {}
    if opset >= 7:
        other = [1 if r.chance(0.3) else n for n in shape[r.integer(0, len(shape)):]]
        b = r.array(kind, *other, low=low, high=3)
        return Case(name, opset, [a, b], {}, [ARITHMETIC[name](a, b).astype(np.bool_ if name in (
            "Equal", "Greater", "Less", "And", "Or", "Xor") else kind)])
    first = r.integer(0, len(shape))
    count = r.integer(0, len(shape) - first)
    if r.chance(0.2):
        first, count = 0, len(shape)
    elif r.chance(0.3):
        first = len(shape) - count
    b = r.array(kind, *shape[first:first + count], low=low, high=3)
    if r.chance(0.1):
        b = r.array(kind, 1, low=low, high=3)
        first = r.integer(0, len(shape) - 1)
    if b.shape != a.shape or r.chance(0.5):
        attributes["broadcast"] = 1
        suffix = first + b.ndim == len(shape)
        if not suffix or r.chance(0.5):
            attributes["axis"] = -1 if suffix and r.chance(0.3) else first if r.chance(0.7) or first == len(
                shape) or first - len(shape) == -1 and b.ndim != 1 else first - len(shape)
    wide = b if b.size == 1 else b.reshape(b.shape + (1,) * (a.ndim - first - b.ndim))
    if b.size == 1:
        wide = b.reshape(())
    if opset < 6 and r.chance(0.3) and name in ("Add", "Sub", "Mul", "Div"):
        attributes["consumed_inputs"] = [0, 0]
    value = ARITHMETIC[name](a, wide)
    return Case(name, opset, [a, b], attributes, [value if value.dtype == np.bool_ else value.astype(kind)])


@versions("PRelu", 1, 7)
def slope(r: Random, opset: int, name: str) -> Case:
    # "If Slope is of size 1, the value is shared across different channels" before opset 7, where it is one a channel.
    shape = r.shape(2, 4)
    x, kind = r.array(F32, *shape), F32
    s = r.array(kind, r.pick([1, shape[1]]), low=0.125, high=1)
    wide = s if s.size == 1 else s.reshape((-1,) + (1,) * (len(shape) - 2))
    if opset >= 7:
        s = wide = r.array(kind, *[n if r.chance(0.7) else 1 for n in shape[r.integer(0, len(shape) - 1):]], low=0.125)
    return Case(name, opset, [x, s], {}, [np.where(x < 0, wide * x, x)])


@versions("Gemm", 1, 7, 11)
def product(r: Random, opset: int, name: str) -> Case:
    m, k, n = r.integer(1, 5), r.integer(1, 5), r.integer(1, 5)
    at, bt = r.integer(0, 1), r.integer(0, 1)
    a, b = r.array(F32, *((k, m) if at else (m, k))), r.array(F32, *((n, k) if bt else (k, n)))
    attributes = {"transA": at, "transB": bt, "alpha": 0.5, "beta": 0.25}
    c = r.array(F32, *r.pick([(m, n), (n,), (1,), (m, n)] if opset < 7 else [(m, n), (n,), (1,), (m, 1), (1, n), ()]))
    if opset < 7 and c.shape != (m, n):
        attributes["broadcast"] = 1
    y = 0.5 * (a.T if at else a) @ (b.T if bt else b)
    if opset >= 11 and r.chance(0.3):
        return Case(name, opset, [a, b], attributes, [y])
    return Case(name, opset, [a, b, c], attributes, [(y + 0.25 * c).astype(F32)])


@versions("BatchNormalization", 1, 7, 9, 14)
def batch_normalisation(r: Random, opset: int, name: str) -> Case:
    # "Output case #1: Y, mean, var, saved_mean, saved_var (training mode). Output case #2: Y (test mode)." "If spatial is
    # false, the dimensions of scale are (C x D1 x ... x Dn)."
    shape = r.shape(2, 4)
    kind = r.pick([F32, F32, F64, F16])
    x = r.array(kind, *shape)
    by_position = opset < 9 and r.chance(0.4)
    parameter = shape[1:] if by_position else shape[1:2]
    scale, bias, mean = (r.array(kind, *parameter) for _ in range(3))
    variance = r.array(kind, *parameter, low=0.5)
    attributes: dict[str, Any] = {"epsilon": 0.01}
    if opset < 6:
        attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    if by_position or opset < 9 and r.chance(0.3):
        attributes["spatial"] = 0 if by_position else 1
    trains = r.chance(0.3) and kind != F16 and x.size > x.shape[1]
    if opset < 7:
        attributes["is_test"] = 0 if trains else 1
    along = (0,) if by_position else (0,) + tuple(range(2, len(shape)))
    spread = (lambda p: p.astype(F64)) if by_position else (
        lambda p: p.astype(F64).reshape((-1,) + (1,) * (len(shape) - 2)))
    m, v = spread(mean), spread(variance)
    outputs: list[Array | None] = []
    if trains:
        attributes["momentum"] = 0.75
        batch_mean, batch_variance = x.astype(F64).mean(along), x.astype(F64).var(along)
        m, v = spread(batch_mean), spread(batch_variance)
        outputs = [(mean * 0.75 + batch_mean * 0.25).astype(kind), (variance * 0.75 + batch_variance * 0.25).astype(kind)]
        if opset >= 14:
            attributes["training_mode"] = 1
        else:  # the schema has one result or five
            outputs += [batch_mean.astype(kind), batch_variance.astype(kind)]
    y = (x - m) / np.sqrt(v + 0.01) * spread(scale) + spread(bias)
    return Case(name, opset, [x, scale, bias, mean, variance], attributes, [y.astype(kind), *outputs])


@versions("Cast", 1, 6, 9, 13, 19)
def cast(r: Random, opset: int, name: str) -> Case:
    kinds = [F32, F64, F16, I32, I64, U8, I8, np.bool_]
    x = r.array(r.pick(kinds), *r.shape())
    if x.dtype.kind == "f" or x.dtype.kind == "i":
        x = np.abs(x)
    to = r.pick(kinds)
    code = TYPE_NAMES[to] if opset < 6 else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to))
    return Case(name, opset, [x], {"to": code}, [x.astype(to)])


@versions("Clip", 1, 6, 11, 12)
def clip(r: Random, opset: int, name: str) -> Case:
    # Version 6: min's default is -3.40282347e+38, max's 3.40282347e+38; since version 11 bounds are inputs, without one.
    kinds = [F32, F64, F16] + ([I32, I64, I8] if opset >= 12 else [])
    x = r.array(r.pick(kinds), *r.shape(0), low=-8, high=8)
    if x.dtype in (F32, F64) and x.ndim and r.chance(0.3):
        x.flat[0] = r.pick([np.inf, -np.inf])
    low, high = (-2 if r.chance(0.6) else None), (3 if r.chance(0.6) else None)
    most = float(np.finfo(F32).max) if 6 <= opset < 11 else None
    with np.errstate(over="ignore"):
        bottom = low if low is not None else None if most is None else -most
        top = high if high is not None else most
        y = x.astype(F64) if x.dtype.kind == "f" else x
        y = y if bottom is None else np.maximum(y, bottom)
        y = (y if top is None else np.minimum(y, top)).astype(x.dtype)
    if opset < 11:
        attributes = {key: float(value) for key, value in (("min", low), ("max", high)) if value is not None}
        return Case(name, opset, [x], attributes, [y])
    bounds = [None if value is None else np.array(value, x.dtype) for value in (low, high)]
    return Case(name, opset, [x, *bounds], {}, [y])


@versions("Concat", 1, 4, 11)
def concat(r: Random, opset: int, name: str) -> Case:
    # Version 1: "Which axis to concat on. Default value is 1."
    shape = list(r.shape(2 if opset < 4 else 1, 4))
    axis = r.integer(0, len(shape) - 1)
    attributes = {"axis": axis - len(shape) if opset >= 11 and r.chance(0.4) else axis}
    if opset < 4 and r.chance(0.5):
        axis, attributes = 1, {}
    parts = []
    for _ in range(r.integer(1, 3)):
        shape[axis] = r.integer(1, 4)
        parts.append(r.array(F32, *shape))
    return Case(name, opset, parts, attributes, [np.concatenate(parts, axis)])


@versions("Dropout", 1, 6, 7, 10, 12)
def dropout(r: Random, opset: int, name: str) -> Case:
    # "If nonzero, run dropout in test mode where the output is simply Y = X"; the mask of ones has the type of X before 10.
    x = r.array(r.pick([F32, F16, F64]), *r.shape())
    attributes: dict[str, Any] = {"ratio": 0.25} if opset < 12 else {}
    if opset < 7:
        attributes["is_test"] = 1
    masks = [] if opset < 7 or r.chance(0.5) else [np.ones(x.shape, x.dtype if opset < 10 else np.bool_)]
    return Case(name, opset, [x], attributes, [x, *masks])


def windows(r: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    kernel = [r.integer(1, min(3, n)) for n in shape]
    out: dict[str, Any] = {"kernel_shape": kernel, "strides": [r.integer(1, 2) for _ in shape]}
    if r.chance(0.4):
        out["pads"] = [r.integer(0, k - 1) for k in kernel] * 2
    return out


def in_windows(x: Array, attributes: dict[str, Any], border: float) -> Array:
    """The elements of each window, along a first axis."""
    kernel, strides, rank = attributes["kernel_shape"], attributes["strides"], x.ndim - 2
    pads, dilations = attributes.get("pads", [0] * 2 * rank), attributes.get("dilations", [1] * rank)
    wide = np.pad(x, [(0, 0)] * 2 + list(zip(pads, pads[rank:])), constant_values=border)
    out = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(wide.shape[2:], kernel, dilations, strides)]
    return np.stack([wide[(..., *[slice(i * d, i * d + (o - 1) * s + 1, s) for i, d, o, s in zip(
        place, dilations, out, strides)])] for place in np.ndindex(*kernel)])


@versions("LpPool", 1, 2, 11, 18)
def lp_pool(r: Random, opset: int, name: str) -> Case:
    # "Lp pooling consists of computing the Lp norm on all values of a subset of the input tensor"; p was a float once.
    shape = tuple(r.integer(2, 6) for _ in range(r.integer(1, 2)))
    x, attributes = r.array(F32, 2, 2, *shape), windows(r, shape)
    p = r.pick([1.0, 2.0, 3.0, 1.5]) if opset < 2 else r.pick([1, 2, 3])
    if opset >= 18 and r.chance(0.3):
        attributes["dilations"] = [2 if n > 2 * k else 1 for n, k in zip(shape, attributes["kernel_shape"])]
    y = (in_windows(np.abs(x.astype(F64)), attributes, 0) ** p).sum(0)
    return Case(name, opset, [x], {**attributes, "p": p}, [(y ** (1 / p)).astype(F32)])


@versions("GlobalLpPool", 1, 2)
def global_lp_pool(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, F32, F64]), *r.shape(3, 5))
    p = r.pick([1.0, 2.0, 3.0, 2.5]) if opset < 2 else r.pick([1, 2, 3])
    y = (np.abs(x.astype(F64)) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
    return Case(name, opset, [x], {"p": p} if p != 2 or r.chance(0.5) else {}, [y.astype(x.dtype)])


@versions("GroupNormalization", 18, 21)
def group_normalisation(r: Random, opset: int, name: str) -> Case:
    # 18: "scale and bias should be specified for each group of channels"; 21: "for each channel".
    groups, each = r.integer(1, 3), r.integer(1, 3)
    x = r.array(F32, r.integer(1, 3), groups * each, *r.shape(1, 2, 4))
    count = groups if opset < 21 else groups * each
    scale, bias = r.array(F32, count), r.array(F32, count)
    parts = x.astype(F64).reshape(x.shape[0], groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 0.01)
    spread = [np.repeat(p, each) if opset < 21 else p for p in (scale, bias)]
    a, b = (p.reshape((-1,) + (1,) * (x.ndim - 2)) for p in spread)
    return Case(name, opset, [x, scale, bias], {"num_groups": groups, "epsilon": 0.01},
                [(parts.reshape(x.shape) * a + b).astype(F32)])


@versions("Softmax LogSoftmax Hardmax", 1, 11, 13)
def softmax(r: Random, opset: int, name: str) -> Case:
    # "Input does not need to explicitly be a 2D vector; rather, it will be coerced into one": [a_0 * ... * a_{k-1},
    # a_k * ... * a_{n-1}], k being the axis, 1 by default. Since 13 along the axis alone, -1 by default.
    shape = r.shape(2 if opset < 13 else 1, 4)
    x = r.array(r.pick([F32, F32, F64]), *shape)
    axis: int | None = r.integer(-len(shape) if opset >= 11 else 0, len(shape) - 1)
    if r.chance(0.3):
        axis = None
    attributes = {} if axis is None else {"axis": axis}
    k = (1 if opset < 13 else -1) if axis is None else axis
    k = k + len(shape) if k < 0 else k
    rows = x.reshape(int(np.prod(shape[:k])), -1) if opset < 13 else np.moveaxis(x, k, -1)
    wide = rows.astype(F64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    if name == "LogSoftmax":
        y = np.log(y)
    if name == "Hardmax":
        y = (np.arange(rows.shape[-1]) == rows.argmax(-1)[..., None]).astype(F64)
    y = y.reshape(shape) if opset < 13 else np.moveaxis(y, -1, k)
    return Case(name, opset, [x], attributes, [y.astype(x.dtype)])


@versions("Pad", 1, 2, 11, 13, 18, 19)
def pad(r: Random, opset: int, name: str) -> Case:
    kind = r.pick([F32, F64, F16] if opset < 11 else [F32, F64, F16, I32, I64])
    x = r.array(kind, *r.shape(1, 4))
    mode = r.pick(["constant", "constant", "edge", "reflect"] + (["wrap"] if opset >= 19 else []))
    axes = list(range(x.ndim))
    if opset >= 18 and r.chance(0.4):
        axes = [axis for axis in axes if r.chance(0.6)] or [0]
    pads = [[r.integer(0, min(2, x.shape[axis] - 1) if mode != "constant" else 2) for axis in axes] for _ in range(2)]
    if mode == "constant" and r.chance(0.3) and x.shape[axes[0]] > 1:
        pads[0][0] = -1
    value = r.pick([0, 2])
    amounts = [(0, 0)] * x.ndim
    cut: Any = x
    for axis, before, after in zip(axes, *pads):
        cut = np.take(cut, range(max(-before, 0), cut.shape[axis]), axis)
        amounts[axis] = (max(before, 0), after)
    y = np.pad(cut, amounts, mode, **({"constant_values": value} if mode == "constant" else {}))
    attributes: dict[str, Any] = {"mode": mode}
    if opset < 11:
        attributes["paddings" if opset < 2 else "pads"] = pads[0] + pads[1]
        if value:
            attributes["value"] = float(value)
        return Case(name, opset, [x], attributes, [y])
    inputs: list[Array | None] = [x, np.array(pads[0] + pads[1], I64), np.array(value, kind) if value else None]
    if len(axes) < x.ndim:
        inputs.append(np.array(axes, I64))
    return Case(name, opset, inputs, attributes, [y], (1, 3))


@versions("Reshape", 1, 5, 14)
def reshape(r: Random, opset: int, name: str) -> Case:
    # "A dimension could also be 0, in which case the actual dimension value is unchanged"
    x = r.array(r.pick([F32, F64]), *r.shape(2, 4))
    target = [0, -1] if r.chance(0.5) else [-1, x.shape[-1]]
    y = x.reshape(x.shape[0], -1) if target[0] == 0 else x.reshape(target)
    if opset < 5:
        return Case(name, opset, [x], {"shape": target}, [y])
    return Case(name, opset, [x, np.array(target, I64)], {}, [y], (1,))


def resampled(x: Array, scales: list[float], linear: bool) -> Array:
    """Positions of the output by the scale; the nearest element is the one at or before it."""
    y = x.astype(F64)
    for axis, scale in enumerate(scales):
        n = x.shape[axis]
        if scale == 1:
            continue
        places = np.arange(int(np.floor(n * F32(scale)))) / F64(F32(scale))
        low = np.clip(np.floor(places + (0 if linear else 1e-9)).astype(int), 0, n - 1)
        weight = np.clip(places - low, 0, 1) if linear else np.zeros(len(places))
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        weight = weight.reshape(shape)
        y = np.take(y, low, axis) * (1 - weight) + np.take(y, np.minimum(low + 1, n - 1), axis) * weight
    return y.astype(x.dtype)


@versions("Upsample", 1, 7, 9)
def upsample(r: Random, opset: int, name: str) -> Case | None:
    # "output_dimension = floor(input_dimension * scale)"; the example of version 1 repeats each element scale times.
    if opset > 9:
        return None
    linear = r.chance(0.5)
    if opset < 7:
        x, scales = r.array(F32, *[r.integer(1, 4) for _ in range(4)]), [1.0, 1.0, r.pick([1.0, 2.0, 3.0]), r.pick([2.0, 1.5])]
        return Case(name, opset, [x], {"height_scale": scales[2], "width_scale": scales[3],
                                       "mode": "bilinear" if linear else "nearest"}, [resampled(x, scales, linear)])
    x = r.array(F32, *r.shape(3, 4))
    scales = [1.0, 1.0] + [r.pick([1.0, 1.5, 2.0, 3.0, 2.25]) for _ in range(x.ndim - 2)]
    attributes: dict[str, Any] = {"mode": "linear" if linear else "nearest"}
    if opset < 9:
        return Case(name, opset, [x], {**attributes, "scales": scales}, [resampled(x, scales, linear)])
    return Case(name, opset, [x, np.array(scales, F32)], attributes, [resampled(x, scales, linear)], (1,))


@versions("Resize", 10, 11, 13, 18, 19)
def resize(r: Random, opset: int, name: str) -> Case | None:
    x = r.array(F32, *r.shape(3, 4))
    scales = [1.0, 1.0] + [r.pick([0.5, 1.0, 1.5, 2.0, 3.0]) for _ in range(x.ndim - 2)]
    if any(np.floor(n * s) < 1 for n, s in zip(x.shape, scales)):
        return None
    linear = r.chance(0.5)
    attributes: dict[str, Any] = {"mode": "linear" if linear else "nearest"}
    if opset < 11:
        return Case(name, opset, [x, np.array(scales, F32)], attributes, [resampled(x, scales, linear)], (1,))
    coordinates = r.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
                         + (["half_pixel_symmetric"] if opset >= 19 else []))
    attributes["coordinate_transformation_mode"] = coordinates
    if not linear:
        attributes["nearest_mode"] = r.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if opset < 13 and not linear and r.chance(0.4):
        # tf_half_pixel_for_nn: x_original = (x_resized + 0.5) / x_scale
        attributes.update(coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
        y = x
        for axis, scale in enumerate(scales):
            places = np.floor((np.arange(int(y.shape[axis] * scale)) + 0.5) / scale + 1e-9).astype(int)
            y = np.take(y, np.clip(places, 0, x.shape[axis] - 1), axis)
        return Case(name, opset, [x, np.zeros(0, F32), np.array(scales, F32)], attributes, [y], (1, 2))
    inputs: list[Array | None] = [x, np.zeros(0, F32) if opset < 13 else None, np.array(scales, F32)]
    y = reference("Resize", 19, [x, None, np.array(scales, F32)], attributes)[0]
    return Case(name, opset, inputs, attributes, [y.astype(F32)], (1, 2))


@versions("RoiAlign", 10, 16)
def regions(r: Random, opset: int, name: str) -> Case:
    # Until version 16 without the shift by half a pixel, which the mode output_half_pixel then names.
    x = r.array(F32, 2, 2, 6, 6)
    rois = np.array([[0.5, 0.5, 4.25, 5.0], [1, 0.25, 5.5, 3.75]], F32)
    batch = np.array([r.integer(0, 1), r.integer(0, 1)], I64)
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 1.0}
    mode = "output_half_pixel" if opset < 16 else r.pick(["half_pixel", "output_half_pixel"])
    y = reference(name, 16, [x, rois, batch], {**attributes, "coordinate_transformation_mode": mode})[0]
    if opset >= 16 and (mode != "half_pixel" or r.chance(0.5)):
        attributes["coordinate_transformation_mode"] = mode
    return Case(name, opset, [x, rois, batch], attributes, [y])


@versions("Scatter ScatterElements", 9, 11, 16, 18)
def scatter(r: Random, opset: int, name: str) -> Case | None:
    if opset > 10 and name == "Scatter" or opset < 11 and name != "Scatter":
        return None
    x = r.array(F32, *r.shape(1, 3))
    axis = r.integer(0, x.ndim - 1)
    places = r.array(I64, *x.shape, low=0, high=x.shape[axis] - 1)
    places = np.argsort(np.argsort(places, axis), axis).astype(I64)  # each once
    attributes: dict[str, Any] = {} if axis == 0 and r.chance(0.5) else {"axis": axis}
    updates = r.array(F32, *x.shape)
    if opset >= 16 and r.chance(0.5):
        attributes["reduction"] = r.pick(["add", "mul"] + (["max", "min"] if opset >= 18 else []))
    y = reference("ScatterElements", 18, [x, places, updates], attributes)[0]
    return Case(name, opset, [x, places, updates], attributes, [y])


@versions("Selu", 1, 6)
def selu(r: Random, opset: int, name: str) -> Case:
    # "alpha: Coefficient of SELU default to 1.6732", "gamma: default to 1.0507"; version 6: 1.67326319, 1.05070102.
    x = r.array(F32, *r.shape())
    alpha, gamma = (1.6732, 1.0507) if opset < 6 else (1.67326319217681884765625, 1.05070102214813232421875)
    attributes = {}
    if r.chance(0.3):
        attributes["alpha"] = alpha = 0.5
    y = np.where(x > 0, gamma * x, gamma * (alpha * np.exp(x.astype(F64)) - alpha))
    return Case(name, opset, [x], attributes, [y.astype(F32)])


@versions("Slice", 1, 10, 11, 13)
def cut(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, F64]), *r.shape(1, 4, 6))
    axes = [axis for axis in range(x.ndim) if r.chance(0.6)] or [0]
    starts = [r.integer(-x.shape[axis], x.shape[axis] - 1) for axis in axes]
    ends = [r.pick([x.shape[axis], 1000, x.shape[axis] - 1]) for axis in axes]
    steps = [1] * len(axes)
    if opset >= 10 and r.chance(0.4):
        steps = [r.pick([1, 2]) for _ in axes]
    y = x
    for axis, start, end, step in zip(axes, starts, ends, steps):
        y = y[(slice(None),) * axis + (slice(start, end, step),)]
    named: list[int] | None = axes if axes != list(range(len(axes))) or r.chance(0.5) else None
    if opset < 10:
        return Case(name, opset, [x], {"starts": starts, "ends": ends, **({} if named is None else {"axes": named})}, [y])
    if opset >= 11 and named is not None and r.chance(0.4):
        named = [axis - x.ndim for axis in axes]
    kind = r.pick([I32, I64])
    lists = [starts, ends, named if named is not None else None, steps if named is not None else None]
    if named is None and steps != [1] * len(axes):
        lists[2:] = [axes, steps]
    return Case(name, opset, [x, *[None if v is None else np.array(v, kind) for v in lists]], {}, [y], (1, 2, 3, 4))


@versions("Split", 1, 2, 11, 13, 18)
def split(r: Random, opset: int, name: str) -> Case | None:
    x = r.array(F32, *r.shape(1, 3, 6))
    axis = r.integer(0, x.ndim - 1)
    n, parts = x.shape[axis], r.integer(1, 3)
    attributes: dict[str, Any] = {"axis": axis - x.ndim if opset >= 11 and r.chance(0.4) else axis}
    inputs: list[Array | None] = [x]
    if r.chance(0.5) and n >= parts:
        sizes = [1] * (parts - 1) + [n - parts + 1]
        if opset < 2 and r.chance(0.5) or opset >= 13:
            inputs.append(np.array(sizes, F32 if opset < 2 else I64))
        else:
            attributes["split"] = sizes
    else:
        if n % parts and opset < 18:
            return None
        each = -(-n // parts)
        sizes = [max(0, min(each, n - i * each)) for i in range(parts)]
        if opset >= 18:
            attributes["num_outputs"] = parts
            if 0 in sizes:
                return None
    return Case(name, opset, inputs, attributes, list(np.split(x, np.cumsum(sizes)[:-1], axis)), (1,))


@versions("Squeeze Unsqueeze", 1, 11, 13)
def squeeze(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, F64]), *r.shape(1, 3))
    axes = sorted(set(r.integer(0, x.ndim) for _ in range(r.integer(1, 2))))
    y = np.expand_dims(x, tuple(axes))
    given = [axis - y.ndim if opset >= 11 and r.chance(0.4) else axis for axis in axes]
    if name == "Squeeze":
        x, y = y, x
    if opset < 13:
        return Case(name, opset, [x], {"axes": given}, [y])
    return Case(name, opset, [x, np.array(given, I64)], {}, [y], (1,))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.abs(x).sum(**k), "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)),
    "ReduceSumSquare": lambda x, **k: (x * x).sum(**k), "ReduceLogSum": lambda x, **k: np.log(x.sum(**k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.exp(x).sum(**k))}


@versions(" ".join(REDUCTIONS), 1, 11, 13, 18)
def reduction(r: Random, opset: int, name: str) -> Case:
    # "The default is to reduce over all the dimensions"; noop_with_empty_axes since axes are an input.
    x = r.array(r.pick([F32, F64]), *r.shape(1, 4), low=0.5 if "Log" in name or "Prod" in name else -4)
    attributes: dict[str, Any] = {} if r.chance(0.3) else {"keepdims": r.integer(0, 1)}
    keep = bool(attributes.get("keepdims", 1))
    axes: list[int] | None = sorted(set(r.integer(0, x.ndim - 1) for _ in range(2))) if r.chance(0.8) else None
    given = None if axes is None else [axis - x.ndim if opset >= 11 and r.chance(0.4) else axis for axis in axes]
    input_since = 13 if name == "ReduceSum" else 18
    y = REDUCTIONS[name](x.astype(F64), axis=None if axes is None else tuple(axes), keepdims=keep)
    if opset < input_since:
        return Case(name, opset, [x], {**attributes, **({} if given is None else {"axes": given})}, [
            np.asarray(y).astype(x.dtype)])
    if axes is None and r.chance(0.5):
        attributes["noop_with_empty_axes"] = 1
        y = REDUCTIONS[name](x.astype(F64)[None], axis=0, keepdims=False) if name not in (
            "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd") else x
    return Case(name, opset, [x] + ([] if given is None else [np.array(given, I64)]), attributes, [
        np.asarray(y).astype(x.dtype)], (1,))


@versions("Tile", 1, 6)
def tile(r: Random, opset: int, name: str) -> Case:
    # Version 1: "Repeat the elements of a tensor along an axis", tiles: "Number of repeated copies to make".
    x = r.array(F32, *r.shape(1, 4, 4))
    if opset < 6:
        axis, tiles = r.integer(0, x.ndim - 1), r.integer(1, 3)
        y = np.concatenate([x] * tiles, axis)
        return Case(name, opset, [x, np.array(tiles, F32).reshape(r.pick([(), (1,)])), np.array(axis, F32).reshape(
            r.pick([(), (1,)]))], {}, [y], (1, 2))
    repeats = np.array([r.integer(1, 3) for _ in range(x.ndim)], I64)
    return Case(name, opset, [x, repeats], {}, [np.tile(x, repeats)], (1,))


@versions("TopK", 1, 10, 11)
def largest(r: Random, opset: int, name: str) -> Case:
    x = r.generator.permutation(48).reshape(r.pick([(48,), (6, 8), (2, 4, 6)])).astype(F32)
    axis = r.integer(-x.ndim if opset >= 11 else 0, x.ndim - 1)
    k, biggest = r.integer(1, x.shape[axis]), True
    attributes: dict[str, Any] = {"axis": axis}
    if axis in (-1, x.ndim - 1) and r.chance(0.3):
        attributes, axis = {}, -1
    if opset >= 11 and r.chance(0.5):
        attributes["largest"], biggest = 0, False
    places = np.take(np.argsort(-x if biggest else x, axis, kind="stable"), range(k), axis)
    outputs: list[Array | None] = [np.take_along_axis(x, places, axis), places.astype(I64)]
    if opset < 10:
        return Case(name, opset, [x], {**attributes, "k": k}, outputs)
    return Case(name, opset, [x, np.array([k], I64)], attributes, outputs, (1,))


@versions("Sum Max Min Mean", 1, 6, 8)
def several(r: Random, opset: int, name: str) -> Case:
    shape, kind = r.shape(1, 3), r.pick([F32, F64])
    parts = [r.array(kind, *(shape if opset < 8 or i == 0 else [n if r.chance(0.6) else 1 for n in shape]))
             for i in range(r.integer(1, 4))]
    total = np.broadcast_arrays(*parts)
    y = {"Sum": np.sum, "Max": np.max, "Min": np.min, "Mean": np.mean}[name](total, axis=0)
    return Case(name, opset, list(parts), {"consumed_inputs": [0] * len(parts)} if opset < 6 and r.chance(0.5) else {}, [
        y.astype(kind)])


UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs, "Ceil": np.ceil, "Exp": np.exp, "Floor": np.floor, "Log": np.log, "Neg": np.negative,
    "Reciprocal": np.reciprocal, "Relu": lambda x: np.maximum(x, 0), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sqrt": np.sqrt, "Tanh": np.tanh, "Elu": lambda x: np.where(x < 0, np.exp(x) - 1, x),
    "LeakyRelu": lambda x: np.where(x < 0, F64(F32(0.01)) * x, x),
    "HardSigmoid": lambda x: np.clip(F64(F32(0.2)) * x + 0.5, 0, 1)}


@versions(" ".join(UNARY), 1, 6, 13)
def unary(r: Random, opset: int, name: str) -> Case:
    # Version 1 has "consumed_inputs: legacy optimization attribute".
    x = r.array(r.pick([F32, F64]), *r.shape(0), low=0.25 if name in ("Log", "Reciprocal", "Sqrt") else -4)
    attributes = {"consumed_inputs": [0]} if opset < 6 and r.chance(0.6) else {}
    return Case(name, opset, [x], attributes, [np.asarray(UNARY[name](x.astype(F64))).astype(x.dtype)])


@versions("DFT", 17, 20)
def fourier(r: Random, opset: int, name: str) -> Case:
    # 17: "axis: The axis on which to perform the DFT. By default this value is set to 1"; 20: an input, by default -2.
    x = r.array(F32, r.integer(1, 3), r.integer(2, 5), r.integer(2, 4), r.pick([1, 2]))
    axis = r.pick([None, 1, 2])
    k = (1 if opset < 20 else 2) if axis is None else axis
    numbers = x[..., 0].astype(np.complex128) + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    y = np.fft.fft(numbers, axis=k)
    y = np.stack([y.real, y.imag], -1).astype(F32)
    if opset < 20:
        return Case(name, opset, [x], {} if axis is None else {"axis": axis}, [y])
    return Case(name, opset, [x] + ([] if axis is None else [None, np.array(axis, I64)]), {}, [y], (2,))


@versions("ArgMax ArgMin", 1, 11, 12)
def place(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, I32]), *r.shape(1, 4), low=0, high=2)
    axis = r.integer(-x.ndim if opset >= 11 else 0, x.ndim - 1)
    attributes: dict[str, Any] = {"axis": axis, "keepdims": r.integer(0, 1)}
    find = np.argmax if name == "ArgMax" else np.argmin
    y = find(x, axis)
    if opset >= 12 and r.chance(0.5):
        attributes["select_last_index"] = 1
        y = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
    y = np.asarray(y, I64)
    return Case(name, opset, [x], attributes, [np.expand_dims(y, axis) if attributes["keepdims"] else y])


@versions("AveragePool MaxPool", 1, 7, 8, 10, 11, 19, 22)
def pool(r: Random, opset: int, name: str) -> Case:
    shape = tuple(r.integer(2, 7) for _ in range(r.integer(1, 2)))
    x, attributes = r.array(F32, 2, 2, *shape), windows(r, shape)
    if name == "AveragePool" and opset >= 7 and r.chance(0.5):
        attributes["count_include_pad"] = 1
    if opset >= (10 if name == "MaxPool" else 19) and r.chance(0.3):
        attributes["dilations"] = [2 if n > 2 * k else 1 for n, k in zip(shape, attributes["kernel_shape"])]
    if name == "MaxPool":
        return Case(name, opset, [x], attributes, [in_windows(x, attributes, -np.inf).max(0)])
    counted = in_windows(np.ones_like(x), attributes, attributes.get("count_include_pad", 0)).sum(0)
    return Case(name, opset, [x], attributes, [(in_windows(x.astype(F64), attributes, 0).sum(0) / counted).astype(F32)])


@versions("GRU LSTM RNN", 1, 3, 7, 14)
def recurrent(r: Random, opset: int, name: str) -> Case | None:
    # Version 1 of all: "output_sequence: The sequence output for the hidden is optional if 0. Default 0."
    if name == "GRU" and opset < 3 and r.chance(0.3):
        return None
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[name]
    steps, batch, size, hidden = r.integer(1, 3), r.integer(1, 2), r.integer(1, 3), r.integer(1, 3)
    x, w = r.array(F32, steps, batch, size, low=-1, high=1), r.array(F32, 1, gates * hidden, size, low=-1, high=1)
    u = r.array(F32, 1, gates * hidden, hidden, low=-1, high=1)
    inputs: list[Array | None] = [x, w, u]
    if r.chance(0.5):
        inputs.append(r.array(F32, 1, 2 * gates * hidden, low=-1, high=1))
    attributes: dict[str, Any] = {"hidden_size": hidden}
    y = reference(name, 14, inputs, attributes, 2)
    if opset < 7 and r.chance(0.6):
        attributes["output_sequence"] = 1
    return Case(name, opset, inputs, attributes, list(y))


@versions("Shape", 1, 13, 15)
def shape_of(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(0, 4))
    attributes = {} if opset < 15 or r.chance(0.3) else {"start": r.integer(-2, 2), "end": r.integer(-2, 4)}
    y = np.array(x.shape, I64)
    if attributes:
        low, high = (min(max(v + x.ndim if v < 0 else v, 0), x.ndim) for v in (attributes["start"], attributes["end"]))
        y = y[low:high]
    return Case(name, opset, [x], attributes, [y])


@versions("DepthToSpace SpaceToDepth", 1, 11, 13, 28)
def depth(r: Random, opset: int, name: str) -> Case:
    block, n, c, h, w = r.integer(1, 3), r.integer(1, 2), r.integer(1, 2), r.integer(1, 3), r.integer(1, 3)
    attributes: dict[str, Any] = {"blocksize": block}
    has_mode = opset >= (11 if name == "DepthToSpace" else 28) and r.chance(0.6)
    mode = r.pick(["DCR", "CRD"]) if has_mode else "DCR"
    if has_mode:
        attributes["mode"] = mode
    if name == "DepthToSpace":
        x = r.array(F32, n, c * block * block, h, w)
        parts = x.reshape((n, block, block, c, h, w) if mode == "DCR" else (n, c, block, block, h, w))
        y = parts.transpose((0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)).reshape(n, c, h * block, w * block)
        return Case(name, opset, [x], attributes, [y])
    x = r.array(F32, n, c, h * block, w * block)
    parts = x.reshape(n, c, h, block, w, block)
    y = parts.transpose((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)).reshape(n, c * block * block, h, w)
    return Case(name, opset, [x], attributes, [y])


@versions("Mod", 10, 13, 28)
def modulo(r: Random, opset: int, name: str) -> Case:
    # "The sign of the result is that of the divisor"; fmod 1: "the sign of the dividend". Floats take fmod 0 since 28.
    kind = r.pick([F32, I32, I64, I8])
    shape = r.shape()
    a, b = r.array(kind, *shape), r.array(kind, *shape, low=1)
    b = np.where(r.array(np.bool_, *shape), b, -b).astype(kind)
    by_zero = not r.chance(0.5) and (kind != F32 or opset >= 28)
    if by_zero:
        return Case(name, opset, [a, b], {}, [np.mod(a, b)])
    return Case(name, opset, [a, b], {"fmod": 1}, [np.fmod(a, b)])


@versions("BitShift", 11, 28)
def shift(r: Random, opset: int, name: str) -> Case:
    kind = r.pick([np.uint8, np.uint16, np.uint32, np.uint64] + ([I8, I32, I64] if opset >= 28 else []))
    shape, direction = r.shape(), r.pick(["LEFT", "RIGHT"])
    a, b = r.array(kind, *shape, low=-100, high=100), r.array(kind, *shape, low=0, high=7)
    return Case(name, opset, [a, b], {"direction": direction}, [(
        np.left_shift if direction == "LEFT" else np.right_shift)(a, b).astype(kind)])


@versions("Gather", 1, 11, 13)
def gather(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(1, 4))
    axis = r.integer(-x.ndim, x.ndim - 1)
    places = r.array(r.pick([I32, I64]), *r.shape(0, 2), low=0 if opset < 11 else -x.shape[axis], high=x.shape[axis] - 1)
    return Case(name, opset, [x, places], {"axis": axis}, [np.take(x, places, axis)])


@versions("Flatten", 1, 9, 11)
def flatten(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(1, 4))
    axis = r.integer(-x.ndim if opset >= 11 else 0, x.ndim)
    attributes = {} if axis == 1 and r.chance(0.5) else {"axis": axis}
    return Case(name, opset, [x], attributes, [x.reshape(int(np.prod(x.shape[:axis])), -1)])


@versions("Shrink", 9)
def shrink(r: Random, opset: int, name: str) -> Case:
    # "If x < -lambd, y = x + bias; If x > lambd, y = x - bias; Otherwise, y = 0", also of integers.
    x = r.array(r.pick([F32, F64, I8, I32, I64]), *r.shape(), low=-8, high=8)
    lambd, bias = r.pick([0.5, 1.5, 2.0]), r.pick([0.0, 0.5, 1.5])
    wide = x.astype(F64)
    y = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0))
    return Case(name, opset, [x], {"lambd": lambd, "bias": bias}, [np.trunc(y).astype(x.dtype) if x.dtype.kind == "i"
                                                                else y.astype(x.dtype)])


@versions("QuantizeLinear DequantizeLinear", 10, 13, 19, 21)
def quantised(r: Random, opset: int, name: str) -> Case:
    # 10: "scale must be a scalar"; 13: along the axis, 1 by default.
    shape = r.shape(2, 4)
    kind = r.pick([U8, I8])
    axis = r.integer(0, len(shape) - 1)
    along = opset >= 13 and r.chance(0.6)
    count = (shape[axis],) if along else ()
    scale, zero = r.array(F32, *count, low=0.25, high=2), r.array(kind, *count, low=-2, high=2)
    spread = [p.reshape([-1 if i == axis else 1 for i in range(len(shape))]) if along else p for p in (scale, zero)]
    attributes = {"axis": axis} if along and (axis != 1 or r.chance(0.5)) else {}
    if name == "QuantizeLinear":
        x = r.array(F32, *shape, low=-40, high=40)
        y = np.clip(np.round(x / spread[0]) + spread[1].astype(I32), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
    else:
        x = r.array(kind, *shape, low=-100, high=100)
        y = ((x.astype(I32) - spread[1].astype(I32)) * spread[0]).astype(F32)
    return Case(name, opset, [x, scale, zero], attributes, [y])


@versions("Scan", 8, 9)
def scan(r: Random, opset: int, name: str) -> Case | None:
    # 8: "The operation supports batching, and the batch-axis is required to be 0."
    steps, size, batch = r.integer(1, 4), r.integer(1, 3), r.integer(1, 3)
    info = onnx.helper.make_tensor_value_info
    parts = [info(n, onnx.TensorProto.FLOAT, [size]) for n in ("s", "e", "t", "o")]
    body = onnx.helper.make_graph([onnx.helper.make_node("Add", ["s", "e"], ["t"]),
                                   onnx.helper.make_node("Mul", ["t", "e"], ["o"])], "body", parts[:2], parts[2:])
    backwards = r.chance(0.4)
    state, x = r.array(F32, batch, size), r.array(F32, batch, steps, size)
    t, rows = state, []
    for i in reversed(range(steps)) if backwards else range(steps):
        t = t + x[:, i]
        rows.append(t * x[:, i])
    attributes: dict[str, Any] = {"body": body, "num_scan_inputs": 1}
    if backwards:
        attributes["directions" if opset < 9 else "scan_input_directions"] = [1]
    if opset < 9:
        return Case(name, opset, [None, state, x], attributes, [t, np.stack(rows, 1)])
    return Case(name, opset, [state[0], x[0]], attributes, [t[0], np.stack(rows, 1)[0]])


@versions("GridSample", 16, 20)
def sampled(r: Random, opset: int, name: str) -> Case:
    # 16: "bilinear (default), nearest and bicubic"; 20: "linear (default), nearest and cubic".
    x = r.array(F32, 1, 2, r.integer(2, 5), r.integer(2, 5))
    grid = r.array(F32, 1, 3, 2, 2, low=-1, high=1)
    mode = r.pick(["linear", "cubic"])
    attributes = {"align_corners": r.integer(0, 1), "padding_mode": r.pick(["zeros", "border", "reflection"])}
    y = reference(name, 20, [x, grid], {**attributes, "mode": mode})[0]
    if mode == "cubic" or r.chance(0.5):
        attributes["mode"] = mode if opset >= 20 else "bi" + mode
    return Case(name, opset, [x, grid], attributes, [y])


# ---- Models ------------------------------------------------------------------------------------------------------------

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
    """Writes the case of a seed and says what it is; None if the seed has none."""
    case = make_case(seed, names)
    if case is None:
        return None
    model, arrays = model_of(case, Random(seed + 1_000_000_007))
    write_data(folder, model, arrays, case.expected())
    return f"{case.operation} of opset {case.opset}"


def archive(write: Callable[[int, list[str], Path], str | None], options: argparse.Namespace) -> int:
    """Adds the cases to a tar.xz, which keeps the cases of other scripts."""
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
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next one has the next")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[], help="this operator")
    parser.add_argument("--batch", type=int, default=100, help="cases in one process of hoist")
    parser.add_argument("--time", type=float, default=0, help="begin no batch after so many seconds")
    parser.add_argument("--folder", type=Path, default=kept, help="of the cases, emptied first")
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
