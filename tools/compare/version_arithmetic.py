"""Definitions of versions.py for operators that compute: arithmetic, reductions, products, normalisation, windows."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import onnx

from version_cases import F16, F32, F64, I32, I64, I8, U8, Array, Case, Random, TYPE_NAMES, reference, versions

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
    # Before opset 7: "If Slope is of size 1, the value is shared across different channels". From opset 7: one element per channel.
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
