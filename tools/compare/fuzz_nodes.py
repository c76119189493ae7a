"""The kinds of nodes of fuzz.py. Each function adds one node to a model, or returns False.

Cases in which the reference evaluator contradicts the standard, and onnxruntime agrees with it or refuses, are left out;
comments with "reference:" name them.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import onnx

from fuzz_model import FLOATS, INTEGERS, Maker, Value


def unary(m: Maker) -> bool:
    jumps = ["Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink"]
    smooth = ["Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Softsign", "Mish", "HardSwish", "Gelu",
              "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "Identity", "Sin", "Cos", "Atan", "Asinh", "Sqrt", "Log",
              "Reciprocal", "Sinh"]
    operator = m.pick(smooth if m.chance(0.7) else jumps)
    options: dict[str, Any] = {}
    if operator in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid") and m.chance():
        options["alpha"] = float(m.pick([0.25, 0.5, 1.5]))
    if operator == "Gelu" and m.chance():
        options["approximate"] = "tanh"
    if operator == "Shrink":
        options = {"lambd": 0.75, "bias": 0.5}
    return m.node(operator, [m.floats(exact=operator in jumps)], **options)


def unary_integers(m: Maker) -> bool:
    operator = m.pick(["Abs", "Neg", "Sign", "BitwiseNot", "Clip"])
    x = m.integers()
    if operator == "Clip":
        return m.node(operator, [x, m.add(np.array(1, x.array.dtype), True), m.add(np.array(4, x.array.dtype), True)])
    return m.node(operator, [x])


def binary(m: Maker) -> bool:
    operator = m.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Sum", "Mean", "Pow"])
    x = m.floats() if operator in ("PRelu", "Mean", "Pow", "Div") else m.numbers()
    if operator in ("Sum", "Mean", "Max", "Min") and m.chance():
        return m.node(operator, [x, m.like(x), m.like(x)])
    if operator == "Pow":
        return m.node(operator, [x, m.add(np.array(m.pick([2, 3, 0.5]), x.array.dtype), True)])
    pair = [x, m.like(x)]
    return m.node(operator, pair if operator == "PRelu" or m.chance(0.7) else pair[::-1])


def binary_integers(m: Maker) -> bool:
    x = m.integers()
    operator = m.pick(["Div", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"])
    if operator in ("Div", "Mod"):
        divisor = m.add(m.random.integers(1, 6, x.array.shape[-1:]).astype(x.array.dtype), True)
        return m.node(operator, [x, divisor], **({"fmod": m.between(0, 1)} if operator == "Mod" else {}))
    if operator == "BitShift":
        if x.array.dtype.kind != "u":
            return False
        return m.node(operator, [x, m.add(m.random.integers(0, 4, x.array.shape).astype(x.array.dtype), True)],
                      direction=m.pick(["LEFT", "RIGHT"]))
    return m.node(operator, [x, m.like(x)])


def comparison(m: Maker) -> bool:
    x = m.numbers(exact=True)
    y = m.like(x)
    if not (x.exact and y.exact):
        return False
    return m.node(m.pick(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]), [x, y])


def logic(m: Maker) -> bool:
    x = m.existing(lambda a: a.dtype == bool) or m.fresh(bool, m.shape(2))
    operator = m.pick(["And", "Or", "Xor", "Not", "Where", "Where"])
    if operator == "Not":
        return m.node(operator, [x])
    if operator == "Where":
        y = m.like(x, m.pick(FLOATS + INTEGERS))
        return m.node(operator, [x, y, m.like(y)])
    return m.node(operator, [x, m.like(x)])


def cast(m: Maker) -> bool:
    to = m.pick(FLOATS + INTEGERS + [np.bool_])
    x = m.anything()
    if np.dtype(to).kind != "f" and not x.exact:
        return False
    if np.dtype(to).kind == "u" and np.any(x.array.astype(np.float64) < 0):
        x_kind = x.array.dtype.kind
        if x_kind == "f":
            return False  # undefined
    return m.node("Cast", [x], to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def clip(m: Maker) -> bool:
    x = m.floats()
    low = m.add(np.array(-1.25, x.array.dtype), m.chance(0.8)) if m.chance(0.8) else None
    high = m.add(np.array(1.5, x.array.dtype), m.chance(0.8)) if m.chance(0.8) else None
    return m.node("Clip", [x, low, high])


def reduction(m: Maker) -> bool:
    operator = m.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                       "ReduceLogSumExp", "ReduceProd"])
    x = m.integers(1) if m.chance(0.2) and operator in ("ReduceSum", "ReduceMax", "ReduceMin") else m.floats(1)
    axes = sorted({m.axis(x) % x.array.ndim for _ in range(m.between(1, 2))})
    axes = [a - x.array.ndim if m.chance(0.3) else a for a in axes]
    options = {"keepdims": m.between(0, 1)}
    if m.chance(0.1):
        return m.node(operator, [x], noop_with_empty_axes=m.between(0, 1), **options)
    return m.node(operator, [x, m.constant(*axes)], **options)


def extreme(m: Maker) -> bool:
    x = m.numbers(1, exact=True)
    return x.exact and m.node(m.pick(["ArgMax", "ArgMin"]), [x], axis=m.axis(x), keepdims=m.between(0, 1),
                              select_last_index=m.between(0, 1))


def running(m: Maker) -> bool:
    x = m.numbers(1)
    return m.node("CumSum", [x, m.add(np.array(m.axis(x), m.pick([np.int32, np.int64])), True)],
                  exclusive=m.between(0, 1), reverse=m.between(0, 1))


def rows(m: Maker) -> bool:
    operator = m.pick(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "MeanVarianceNormalization",
                       "LayerNormalization"])
    x = m.floats(1, exact=operator == "Hardmax")
    if operator == "MeanVarianceNormalization":
        axes = sorted({m.axis(x) % x.array.ndim for _ in range(2)})
        return np.ptp(x.array) > 0 and x.exact and m.node(operator, [x], axes=axes)
    if operator == "LpNormalization":
        return m.node(operator, [x], axis=m.axis(x), p=2)  # reference: p = 1 divides by the sum itself
    if operator == "LayerNormalization":
        axis = m.axis(x) % x.array.ndim
        shape = x.array.shape[axis:]
        return x.exact and m.node(operator, [x, m.fresh(x.array.dtype, shape),
                                             m.fresh(x.array.dtype, shape) if m.chance() else None],
                                  axis=axis, epsilon=0.01)
    return m.node(operator, [x], axis=m.axis(x))


def channels(m: Maker) -> bool:
    x = m.floats(3)
    n, kind = x.array.shape[1], x.array.dtype
    operator = m.pick(["BatchNormalization", "InstanceNormalization", "LRN", "GlobalAveragePool", "GlobalMaxPool"])
    if operator == "LRN":
        size = m.pick([1, 3, 5])  # onnxruntime refuses even sizes
        return m.node(operator, [x], size=size, alpha=0.5, beta=0.75, bias=1.5)
    if operator == "BatchNormalization":
        variance = m.add((np.abs(m.data(kind, (n,))) + kind.type(0.5)).astype(kind), True)
        return m.node(operator, [x, *(m.add(m.data(kind, (n,)), m.chance(0.8)) for _ in range(3)), variance], epsilon=0.01)
    if operator == "InstanceNormalization":
        return x.exact and m.node(operator, [x, m.fresh(kind, (n,)), m.fresh(kind, (n,))], epsilon=0.01)
    if operator == "GlobalMaxPool" and x.array.ndim != 4:  # reference: other ranks lose the channels
        return False
    return m.node(operator, [x])


def recurrent(m: Maker) -> bool:
    """One direction or two with data of their own: the reference knows neither lengths nor a clip."""
    operator = m.pick(["RNN", "GRU", "LSTM"])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    x = m.existing(lambda a: a.dtype == np.float32 and a.ndim == 3 and a.shape[0] <= 9 and a.shape[2] <= 33)
    if x is None or not np.all(np.abs(x.array) < 16):
        x = m.fresh(np.float32, (m.between(1, 6), m.between(1, 4), m.extent()))
    hidden, batch = m.pick([1, 2, 3, 5, 8, 9, 16, 17]), x.array.shape[1]

    def weights(*shape: int) -> Value:
        return m.add((m.data(np.float32, shape) / 8).astype(np.float32), m.chance(0.8))

    inputs: list[Value | None] = [x, weights(1, gates * hidden, x.array.shape[2]), weights(1, gates * hidden, hidden)]
    inputs.append(weights(1, 2 * gates * hidden) if m.chance() else None)
    inputs += [None, weights(1, batch, hidden) if m.chance() else None]
    options: dict[str, Any] = {"hidden_size": hidden}
    if operator == "LSTM":
        inputs += [weights(1, batch, hidden) if m.chance() else None, weights(1, 3 * hidden) if m.chance() else None]
    if operator == "GRU":
        options["linear_before_reset"] = m.between(0, 1)
    return m.node(operator, inputs, 3 if operator == "LSTM" else 2, **options)


def movement(m: Maker) -> bool:
    x = m.anything(1)
    shape, rank = x.array.shape, x.array.ndim
    operator = m.pick(["Transpose", "Transpose", "Reshape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Slice",
                       "Pad", "Pad", "Tile", "Expand", "Trilu", "Concat", "Concat", "Split", "CenterCropPad"])
    if operator == "Transpose":
        return m.node(operator, [x], perm=[int(i) for i in m.random.permutation(rank)])
    if operator == "Reshape":
        k = m.between(0, rank - 1)
        wanted = [*shape[:k], -1] if m.chance() else [-1, *shape[k + 1:]]
        if m.chance(0.3) and rank > 1:
            wanted = [0, -1]
        return m.node(operator, [x, m.constant(*wanted)])
    if operator == "Flatten":
        return m.node(operator, [x], axis=m.between(-rank, rank))
    if operator == "Squeeze":
        ones = [axis for axis, n in enumerate(shape) if n == 1]
        return bool(ones) and m.node(operator, [x, m.constant(*ones)])
    if operator == "Unsqueeze":
        return rank < 5 and m.node(operator, [x, m.constant(m.between(-rank - 1, rank))])
    if operator == "Slice":
        axis = m.axis(x)
        n = shape[axis]
        start, stop, step = m.between(-n - 1, n), m.between(-n - 2, n + 2), m.pick([1, 1, 2, 3, -1, -2])
        return m.node(operator, [x, m.constant(start), m.constant(stop), m.constant(axis), m.constant(step)])
    if operator == "Pad":
        mode = m.pick(["constant", "constant", "reflect", "edge", "wrap"])
        if x.array.dtype == bool:
            return False
        pads = [m.between(-1 if mode == "constant" else 0, 3) for _ in range(2 * rank)]
        if mode in ("reflect", "wrap"):
            pads = [min(p, shape[i % rank] - 1) for i, p in enumerate(pads)]
        value = m.add(np.array(2, x.array.dtype), True) if mode == "constant" and m.chance() else None
        return m.node(operator, [x, m.constant(*pads), value], mode=mode)
    if operator == "Tile":
        return m.node(operator, [x, m.constant(*(m.pick([1, 1, 2, 3]) for _ in shape))])
    if operator == "Expand":
        return m.node(operator, [x, m.constant(m.pick([1, 2, 3]), *(n if n > 1 else m.pick([1, 4]) for n in shape))])
    if operator == "Trilu":
        return rank >= 2 and m.node(operator, [x, m.add(np.array(m.between(-3, 3)), True)], upper=m.between(0, 1))
    if operator == "Concat":
        axis = m.axis(x)
        def fits(a: np.ndarray) -> bool:
            return a.dtype == x.array.dtype and a.ndim == rank and all(
                a.shape[i] == shape[i] for i in range(rank) if i != axis % rank)
        others = [m.existing(fits) or x for _ in range(m.between(1, 2))]
        if m.chance(0.4):
            other = list(shape)
            other[axis] = m.extent()
            others.append(m.fresh(x.array.dtype, tuple(other)))
        return m.node(operator, [x, *others], axis=axis)
    if operator == "Split":
        axis = m.axis(x)
        n = shape[axis]
        return n > 1 and m.node(operator, [x, m.constant(n // 2, n - n // 2)], outputs=2, axis=axis)
    return m.node("CenterCropPad", [x, m.constant(m.extent())], axes=[m.axis(x)])


def gather(m: Maker) -> bool:
    x = m.anything(1)
    shape, rank = x.array.shape, x.array.ndim
    axis = m.axis(x)
    n = shape[axis]
    operator = m.pick(["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "ReverseSequence"])
    kind = m.pick([np.int64, np.int32]) if operator in ("Gather", "GatherElements", "ScatterElements") else np.int64
    known = m.chance()
    if operator == "Gather":
        places = m.random.integers(-n, n, m.pick([(), (3,), (2, 4)])).astype(kind)
        return m.node(operator, [x, m.add(np.array(places), known)], axis=axis)
    if operator == "GatherElements":
        return m.node(operator, [x, m.add(m.random.integers(-n, n, shape).astype(kind), known)], axis=axis)
    if operator == "GatherND":
        return m.node(operator, [x, m.add(m.random.integers(0, shape[0], (3, 1)).astype(kind), known)])
    if operator == "ReverseSequence":
        if rank < 2:
            return False
        return m.node(operator, [x, m.add(m.random.integers(1, shape[0] + 1, shape[1:2]), known)])
    if operator == "ScatterND":
        places = m.random.permutation(shape[0])[:max(1, shape[0] // 2)].reshape(-1, 1).astype(np.int64)
        updates = m.fresh(x.array.dtype, (len(places), *shape[1:]))
        return m.node(operator, [x, m.add(places, known), updates])
    places = np.moveaxis(np.broadcast_to(m.random.permutation(n), np.moveaxis(np.empty(shape), axis, -1).shape), -1, axis)
    return m.node(operator, [x, m.add(np.ascontiguousarray(places).astype(kind), known), m.fresh(x.array.dtype, shape)],
                  axis=axis)


def product(m: Maker) -> bool:
    x = m.floats(2)
    kind, shape = x.array.dtype, x.array.shape
    if kind == np.float16:
        return False
    operator = m.pick(["MatMul", "MatMul", "Gemm", "Einsum"])
    columns = m.extent()
    if operator == "MatMul":
        batch = shape[:-2] if m.chance(0.3) else ()
        return m.node(operator, [x, m.fresh(kind, (*batch, shape[-1], columns))])
    if operator == "Gemm":
        if x.array.ndim != 2:
            return False
        a, b = m.between(0, 1), m.between(0, 1)
        inner, lines = (shape[0], shape[1]) if a else (shape[1], shape[0])
        c = m.fresh(kind, m.pick([(columns,), (lines, 1), (1,), (lines, columns)])) if m.chance(0.7) else None
        return m.node(operator, [x, m.fresh(kind, (columns, inner) if b else (inner, columns)), c], transA=a, transB=b,
                      alpha=m.pick([1.0, 0.5]), beta=m.pick([1.0, 2.0]))
    if x.array.ndim == 2:
        return m.node(operator, [x, m.fresh(kind, (shape[1], columns)), m.fresh(kind, (columns, 3))],
                      equation=m.pick(["ij,jk,kl->il", "ij,jk,kl->lj", "ij,jk,kl"]))
    return m.node(operator, [x, m.fresh(kind, (shape[-1], columns))], equation="...i,ij->...j")


def window(m: Maker, spatial: int, extents: tuple[int, ...], transposed: bool = False) -> dict[str, Any]:
    kernel = [min(m.between(1, 4), n) for n in extents]
    options: dict[str, Any] = {"kernel_shape": kernel}
    if m.chance(0.6):
        options["strides"] = [m.between(1, 3) for _ in range(spatial)]
    if m.chance(0.3):
        options["dilations"] = [m.between(1, 2) for _ in range(spatial)]
    if m.chance(0.3) and not transposed:
        options["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        options.pop("dilations", None)  # reference: padding as if there were none
        if "strides" in options:  # reference: less than no padding
            options["strides"] = [min(s, k) for s, k in zip(options["strides"], kernel)]
    elif m.chance(0.6):
        options["pads"] = [m.between(0, k - 1) for k in kernel] * 2 if m.chance() else [
            m.between(0, k - 1) for k in kernel + kernel]
    return options


def convolution(m: Maker) -> bool:
    x = m.floats(3, most=4)
    kind, (_, c, *extents) = x.array.dtype, x.array.shape
    if kind == np.float16:
        return False
    transposed = m.chance(0.3)
    options = window(m, len(extents), tuple(extents), transposed)
    group = 1 if transposed else m.pick([g for g in (1, 1, 2, c) if c % g == 0])  # reference: groups when transposed
    outputs = group * m.between(1, 3)
    shape = (c, outputs // group, *options["kernel_shape"]) if transposed else (
        outputs, c // group, *options["kernel_shape"])
    bias = m.fresh(kind, (outputs,)) if m.chance() else None
    if transposed and m.chance(0.3) and "strides" in options:
        options["output_padding"] = [min(1, s - 1) for s in options["strides"]]
    return m.node("ConvTranspose" if transposed else "Conv", [x, m.fresh(kind, shape), bias], group=group, **options)


def pool(m: Maker) -> bool:
    x = m.floats(3, most=4)
    options = window(m, x.array.ndim - 2, x.array.shape[2:])
    operator = m.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    if operator == "LpPool":  # reference: padding counts
        options.pop("pads", None), options.pop("auto_pad", None)
    elif m.chance(0.3):
        options["ceil_mode"] = 1
    if operator == "AveragePool" and m.chance():
        options["count_include_pad"] = 1
    return m.node(operator, [x], **options)


def picture(m: Maker) -> bool:
    x = m.existing(lambda a: a.ndim == 4 and a.dtype == np.float32) or m.fresh(np.float32, (1, 4, 6, 9))
    _, c, h, w = x.array.shape
    operator = m.pick(["DepthToSpace", "SpaceToDepth", "Resize"])
    if operator == "DepthToSpace":
        return c % 4 == 0 and m.node(operator, [x], blocksize=2, mode=m.pick(["DCR", "CRD"]))
    if operator == "SpaceToDepth":
        return h % 2 == 0 and w % 2 == 0 and m.node(operator, [x], blocksize=2)
    mode = m.pick(["nearest", "linear", "cubic"])
    options = {"coordinate_transformation_mode": m.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        options["nearest_mode"] = m.pick(["floor", "ceil", "round_prefer_floor"])
    if m.chance():
        scales = m.add(np.array([1, 1, m.pick([0.5, 1.5, 2]), m.pick([0.5, 2, 3])], np.float32), True)
        return m.node(operator, [x, None, scales], mode=mode, **options)
    sizes = m.constant(x.array.shape[0], c, m.between(1, 12), m.between(1, 12))
    return m.node(operator, [x, None, None, sizes], mode=mode, **options)


def quantised(m: Maker) -> bool:
    x = m.floats(1, exact=True)
    if not x.exact or x.array.dtype != np.float32:
        return False
    kind = m.pick([np.uint8, np.int8, np.int16, np.uint16])
    axis = m.axis(x)
    per_axis = m.chance(0.4)
    n = x.array.shape[axis]
    scale = np.exp2(m.random.integers(-3, 1, n if per_axis else ())).astype(np.float32)
    zero = m.random.integers(0, 5, n if per_axis else ()).astype(kind)
    s, z = m.add(np.array(scale), True), m.add(np.array(zero), True)
    if not m.node("QuantizeLinear", [x, s, z], axis=axis):
        return False
    last = m.model.values[m.model.nodes[-1].outputs[0]]
    return m.chance(0.2) or m.node("DequantizeLinear", [last, s, z], axis=axis)


def integer_product(m: Maker) -> bool:
    x = m.existing(lambda a: a.dtype in (np.int8, np.uint8) and a.ndim >= 2) or m.fresh(m.pick([np.int8, np.uint8]), m.shape(2))
    kind = m.pick([np.int8, np.uint8])
    weights = m.fresh(kind, (x.array.shape[-1], m.extent()))
    zero = m.add(np.array(2, x.array.dtype), m.chance()) if m.chance() else None
    return m.node("MatMulInteger", [x, weights, zero, m.add(np.array(1, kind), True) if m.chance(0.4) else None])


def largest(m: Maker) -> bool:
    x = m.numbers(1, exact=True)
    if not x.exact:
        return False
    axis = m.axis(x)
    return m.node("TopK", [x, m.constant(m.between(1, x.array.shape[axis]))], outputs=2, axis=axis, largest=m.between(0, 1))


def sampled(m: Maker) -> bool:
    """Positions of the grid are drawn; "nearest" is discontinuous, so positions halfway between elements are avoided."""
    x = m.existing(lambda a: a.ndim in (4, 5) and a.dtype == np.float32 and a.size <= 400) or m.fresh(np.float32, (1, 2, 4, 5))
    spatial = x.array.ndim - 2
    mode = m.pick(["linear", "linear", "cubic"]) if spatial == 2 else "linear"
    # in cubic mode onnxruntime clamps the elements around a position, not the position
    padding = m.pick(["zeros", "reflection"] if mode == "cubic" else ["zeros", "border", "reflection"])
    grid = m.random.uniform(-1.3, 1.3, (x.array.shape[0], *(m.between(1, 4) for _ in range(spatial)), spatial))
    return m.node("GridSample", [x, m.add(grid.astype(np.float32), m.chance(0.3))], mode=mode, padding_mode=padding,
                  align_corners=m.between(0, 1))


def signal(m: Maker) -> bool:
    x = m.existing(lambda a: a.ndim >= 2 and a.shape[-1] in (1, 2) and a.dtype == np.float32) or m.fresh(
        np.float32, (2, max(2, m.extent()), m.between(1, 2)))
    shape = x.array.shape
    if len(shape) == 3 and shape[2] == 1 and m.chance(0.3):
        length = m.between(1, shape[1])
        return m.node("STFT", [x, m.add(np.array(m.between(1, 4)), True), m.fresh(np.float32, (length,)),
                               m.add(np.array(length), True)], onesided=m.between(0, 1))
    onesided = int(shape[-1] == 1 and m.chance())
    length = m.add(np.array(m.between(1, 20)), True) if m.chance(0.4) else None
    return m.node("DFT", [x, length, m.add(np.array(m.between(0, len(shape) - 2)), True)], onesided=onesided,
                  inverse=0 if onesided else m.between(0, 1))


def square(m: Maker) -> bool:
    x = m.existing(lambda a: a.ndim >= 2 and a.shape[-1] == a.shape[-2] and a.dtype == np.float32 and a.shape[-1] < 9)
    n = m.between(1, 6)
    return m.node("Det", [x or m.fresh(np.float32, (m.between(1, 3), n, n))])


def regions(m: Maker) -> bool:
    x = m.existing(lambda a: a.ndim == 4 and a.dtype == np.float32) or m.fresh(np.float32, (2, 3, 6, 7))
    starts = m.random.integers(-8, 24, (3, 2)) / 4
    boxes = np.concatenate([starts, starts + m.random.integers(1, 24, (3, 2)) / 4], 1).astype(np.float32)
    images = m.random.integers(0, x.array.shape[0], 3)
    return m.node("RoiAlign", [x, m.add(boxes, m.chance(0.3)), m.add(images, m.chance(0.3))], sampling_ratio=m.between(1, 3),
                  output_height=m.between(1, 3), output_width=m.between(1, 3), mode=m.pick(["avg", "max"]),
                  coordinate_transformation_mode=m.pick(["half_pixel", "output_half_pixel"]))


def windows_put_back(m: Maker) -> bool:
    kernel, image = [m.between(1, 3), m.between(1, 3)], [m.between(3, 7), m.between(3, 7)]
    strides, pads = [m.between(1, 2), m.between(1, 2)], [m.between(0, 1) for _ in range(4)]
    counts = [(n + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, n in enumerate(image)]
    x = m.fresh(np.float32, (m.between(1, 2), 2 * kernel[0] * kernel[1], counts[0] * counts[1]))
    return m.node("Col2Im", [x, m.constant(*image), m.constant(*kernel)], strides=strides, pads=pads)


def table_model(m: Maker) -> bool:
    x = m.existing(lambda a: a.ndim == 2 and a.dtype == np.float32 and a.shape[1] < 20) or m.fresh(np.float32, (3, 4))
    features = x.array.shape[1]
    numbers = lambda n: [float(v) for v in m.random.integers(-8, 9, n) / 4]  # noqa: E731
    operator = m.pick(["Scaler", "Normalizer", "LinearRegressor", "Binarizer"])
    if operator == "Scaler":
        options: dict[str, Any] = {"offset": numbers(features), "scale": numbers(features)}
    elif operator == "Normalizer":
        options = {"norm": m.pick(["MAX", "L1", "L2"])}
    elif operator == "Binarizer":
        return x.exact and m.node(operator, [x], domain="ai.onnx.ml", threshold=0.25)
    else:
        targets = m.between(1, 3)
        options = {"coefficients": numbers(targets * features), "intercepts": numbers(targets), "targets": targets,
                   "post_transform": "NONE"}
    return m.node(operator, [x], domain="ai.onnx.ml", **options)


def contributed(m: Maker) -> bool:
    """Operators of onnxruntime's own domain on floats."""
    x = m.existing(lambda a: a.ndim >= 1 and a.dtype == np.float32) or m.fresh(np.float32, (3, 8))
    width = x.array.shape[-1]
    operator = m.pick(["Gelu", "BiasGelu", "FastGelu", "QuickGelu", "FusedMatMul", "SkipLayerNormalization",
                       "SkipSimplifiedLayerNormalization", "DynamicQuantizeMatMul"])
    values: list[Value | None] = [x]
    options: dict[str, Any] = {}
    if operator == "BiasGelu" or (operator == "FastGelu" and m.chance()):
        values.append(m.fresh(np.float32, (width,)))
    elif operator == "QuickGelu":
        options["alpha"] = float(m.pick([1.0, 1.702]))
    elif operator == "FusedMatMul":
        if x.array.ndim < 2:
            return False
        turned = m.between(0, 1)
        values.append(m.fresh(np.float32, (m.extent(), width) if turned else (width, m.extent())))
        options = {"transB": turned, "alpha": m.pick([0.5, 1.0])}
    elif operator == "DynamicQuantizeMatMul":
        if not x.exact:
            return False
        values += [m.fresh(np.uint8, (width, m.extent())), m.add(np.array(0.25, np.float32), True)]
    else:
        if x.array.ndim != 3:
            return False
        values += [m.like(x) if m.chance(0.2) else m.fresh(np.float32, x.array.shape), m.fresh(np.float32, (width,))]
        options["epsilon"] = 1e-3
    return m.node(operator, values, domain="com.microsoft", **options)


def contributed_integers(m: Maker) -> bool:
    """The same on 8-bit numbers; scales are powers of two, so that no result is near a tie in only one engine."""
    x = m.existing(lambda a: a.dtype in (np.int8, np.uint8) and a.ndim >= 1) or m.fresh(m.pick([np.int8, np.uint8]), m.shape(2))
    kind = x.array.dtype
    scale = lambda: m.add(np.array(2.0 ** -m.between(1, 4), np.float32), True)  # noqa: E731
    zero = lambda: m.add(np.array(m.between(0, 5), kind), True)  # noqa: E731
    operator = m.pick(["QLinearAdd", "QLinearMul", "QLinearLeakyRelu", "QLinearConcat", "QLinearGlobalAveragePool",
                       "QLinearAveragePool"])
    values = [x, scale(), zero()]
    options: dict[str, Any] = {}
    if operator in ("QLinearAdd", "QLinearMul"):
        values += [m.fresh(kind, x.array.shape), scale(), zero()]
    elif operator == "QLinearLeakyRelu":
        options["alpha"] = 0.25
    elif operator == "QLinearConcat":
        return m.node(operator, [scale(), zero(), *values, m.fresh(kind, x.array.shape), scale(), zero()],
                      domain="com.microsoft", axis=m.axis(x))
    elif x.array.ndim != 4:
        return False
    elif operator == "QLinearAveragePool":
        options = {"kernel_shape": [min(2, n) for n in x.array.shape[2:]]}
    return m.node(operator, [*values, scale(), zero()], domain="com.microsoft", **options)


def contributed_attention(m: Maker) -> bool:
    """Attention of com.microsoft, with keys of earlier calls if the draw says so."""
    batch, length, size = m.between(1, 2), m.between(1, 6), 2 * m.between(1, 5)
    kept = m.between(1, 3)
    past = m.between(1, 5) if m.chance(0.4) else 0
    options: dict[str, Any] = {"scale": 0.25} if m.chance(0.3) else {}
    fresh = lambda *shape: m.fresh(np.float32, shape)  # noqa: E731
    table = lambda rows: fresh(rows, size // 2)  # noqa: E731
    operator = m.pick(["Attention", "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding"])
    if operator == "RotaryEmbedding":
        first = m.add(np.array([m.between(0, 3)], np.int64), True)
        return m.node(operator, [fresh(batch, length, kept * size), first, table(length + 3), table(length + 3)],
                      domain="com.microsoft", interleaved=m.between(0, 1))
    if operator == "Attention":
        width = kept * size
        values = [fresh(batch, length, m.extent()), None, fresh(3 * width)]
        values[1] = fresh(values[0].array.shape[2], 3 * width)
        options |= {"num_heads": kept, "unidirectional": m.between(0, 1)}
        if past:
            return m.node(operator, [*values, None, fresh(2, batch, kept, past, size)], 2, "com.microsoft", **options)
        return m.node(operator, values, domain="com.microsoft", **options)
    heads = kept * m.between(1, 3) if operator == "GroupQueryAttention" else kept
    if operator == "GroupQueryAttention" and m.chance(0.3):
        values = [fresh(batch, length, (heads + 2 * kept) * size), None, None]
    else:
        values = [fresh(batch, length, heads * size), fresh(batch, length, kept * size), fresh(batch, length, kept * size)]
    before = [fresh(batch, kept, past, size), fresh(batch, kept, past, size)] if past else [None, None]
    bias = fresh(batch, heads, length, past + length) if m.chance(0.3) else None
    if operator == "MultiHeadAttention":
        given = [*values, None, None, bias, *before] if past else [*values, None, None, bias]
        return m.node(operator, given, 3 if past else 1, "com.microsoft", num_heads=heads, **options)
    if past:
        batch = 1
        values = [None if value is None else fresh(1, *value.array.shape[1:]) for value in values]
        before = [fresh(1, *value.array.shape[1:]) for value in before]
        bias = None if bias is None else fresh(1, *bias.array.shape[1:])
    total = past + length
    counts = [m.add(np.full(batch, total - 1, np.int32), True), m.add(np.array([total], np.int32), True)]
    turned = [table(total), table(total)] if m.chance(0.5) else [None, None]
    options |= {"num_heads": heads, "kv_num_heads": kept, "do_rotary": int(turned[0] is not None),
                "rotary_interleaved": m.between(0, 1), "local_window_size": m.pick([-1, -1, m.between(1, total)]),
                "softcap": m.pick([0.0, 0.0, 2.0]), "smooth_softmax": m.between(0, 1)}
    return m.node(operator, [*values, *before, *counts, *turned, None, bias], 3, "com.microsoft", **options)


KINDS: list[Callable[[Maker], bool]] = (
    [unary, binary, movement] * 4 + [reduction, product, convolution, pool, gather] * 2 +
    [unary_integers, binary_integers, comparison, logic, cast, clip, extreme, running, rows, channels, picture, quantised,
     integer_product, recurrent, largest, sampled, signal, square, regions, windows_put_back, table_model, contributed,
     contributed_integers, contributed_attention])
