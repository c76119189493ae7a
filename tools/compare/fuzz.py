"""Random models, hoist against ONNX's reference evaluator, with onnxruntime as the judge. Development only.

    build/compare/bin/python tools/compare/fuzz.py --count 1000 --interpret       # without a device, a few a second
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
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
import onnx.reference
import onnxruntime

from engines import HOIST, WORK

OPSET = 21
OPSETS = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", 3),
          onnx.helper.make_opsetid("com.microsoft", 1)]
FOLDER = WORK / "fuzz"
FLOATS = [np.float32] * 6 + [np.float16, np.float64]
INTEGERS = [np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64]
VERDICTS = ["found", "disputed", "unwitnessed", "outvoted"]


@dataclass
class Sizes:
    extents: list[int]
    most_elements: int  # of an array
    fewest_nodes: int
    most_nodes: int


# Strategies, tiles and vectors of kernels depend on how much there is to do.
SMALL = Sizes([1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33], 6000, 5, 40)
LARGE = Sizes([1, 2, 3, 8, 16, 33, 64, 100, 128, 257, 512, 1024], 300_000, 1, 4)


@dataclass
class Value:
    name: str
    array: np.ndarray
    exact: bool  # every engine computes the same bits


@dataclass
class Node:
    proto: onnx.NodeProto
    inputs: list[str]
    outputs: list[str]


@dataclass
class Model:
    values: dict[str, Value] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def proto(self, outputs: list[str], cut: set[str]) -> tuple[onnx.ModelProto, list[str]]:
        """The nodes that the outputs need; values in `cut` are inputs. The inputs' names in order."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(set(node.outputs) - cut):
                kept.append(node)
                needed.update(node.inputs)
        kept.reverse()
        made = {name for node in kept for name in node.outputs}
        read = [name for node in kept for name in node.inputs if name]
        given = list(dict.fromkeys(name for name in read if (name not in made or name in cut)
                                   and name not in self.constants))
        constants = list(dict.fromkeys(name for name in read if name in self.constants))
        nodes = []
        for node in kept:  # a value that is cut is made under another name
            proto = onnx.NodeProto()
            proto.CopyFrom(node.proto)
            del proto.output[:]
            proto.output.extend(f"{name}_unread" if name in cut else name for name in node.proto.output)
            nodes.append(proto)
        graph = onnx.helper.make_graph(
            nodes, "fuzz", [self.info(name) for name in given], [self.info(name) for name in outputs],
            [onnx.numpy_helper.from_array(self.values[name].array, name) for name in constants])
        return onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=10), given

    def info(self, name: str) -> onnx.ValueInfoProto:
        array = self.values[name].array
        return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def leaves(self) -> list[str]:
        read = {name for node in self.nodes for name in node.inputs}
        return [name for node in self.nodes for name in node.outputs if name not in read]


def is_exact(array: np.ndarray) -> bool:
    if array.dtype.kind != "f":
        return True
    wide = array.astype(np.float64)
    scale = 16 if array.dtype == np.float16 else 1024
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(wide)) and np.all(np.abs(wide) < scale) and np.all(wide * 8 == np.rint(wide * 8)))


class Maker:
    """Makes one model from a seed."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self.random = np.random.default_rng(seed)
        self.sizes = sizes
        self.model = Model()

    # ---- choices
    def pick(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def between(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def extent(self) -> int:
        return self.pick(self.sizes.extents)

    def shape(self, rank: int) -> tuple[int, ...]:
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if np.prod(shape, dtype=np.int64) <= self.sizes.most_elements // 2:
                return shape

    def data(self, kind: Any, shape: tuple[int, ...]) -> np.ndarray:
        kind = np.dtype(kind)
        if kind == bool:
            return self.random.integers(0, 2, shape).astype(bool)
        if kind.kind == "f":
            return (self.random.integers(-12, 13, shape) / 4).astype(kind)
        return self.random.integers(0 if kind.kind == "u" else -5, 6, shape).astype(kind)

    def add(self, array: np.ndarray, constant: bool) -> Value:
        name = f"{'c' if constant else 'x'}{len(self.model.values)}"
        (self.model.constants if constant else self.model.inputs).append(name)
        self.model.values[name] = Value(name, array, is_exact(array))
        return self.model.values[name]

    def fresh(self, kind: Any, shape: tuple[int, ...]) -> Value:
        return self.add(self.data(kind, shape), self.chance(0.4))

    def constant(self, *values: Any, kind: Any = np.int64) -> Value:
        return self.add(np.array(values, kind), True)

    def existing(self, fits: Callable[[np.ndarray], bool], exact: bool = False) -> Value | None:
        found = [v for v in self.model.values.values()
                 if v.name not in self.model.constants and fits(v.array) and (v.exact or not exact)]
        if not found:
            return None
        return found[-1 - min(int(self.random.exponential(2.5)), len(found) - 1)]

    def floats(self, least: int = 0, exact: bool = False, most: int = 5) -> Value:
        found = self.existing(lambda a: a.dtype.kind == "f" and least <= a.ndim <= most, exact)
        if found is None or self.chance(0.08):
            found = self.fresh(self.pick(FLOATS), self.shape(self.between(least, max(least, min(most, 4)))))
        return found

    def integers(self, least: int = 0) -> Value:
        found = self.existing(lambda a: a.dtype.kind in "iu" and a.ndim >= least)
        if found is None or self.chance(0.15):
            found = self.fresh(self.pick(INTEGERS), self.shape(self.between(max(least, 1), 4)))
        return found

    def numbers(self, least: int = 0, exact: bool = False) -> Value:
        return self.integers(least) if self.chance(0.3) else self.floats(least, exact)

    def anything(self, least: int = 0) -> Value:
        found = self.existing(lambda a: a.ndim >= least)
        return found if found is not None and self.chance(0.9) else self.numbers(least)

    def like(self, value: Value, kind: Any = None) -> Value:
        """Something that broadcasts with it."""
        kind = kind or value.array.dtype
        shape = list(value.array.shape)
        found = self.existing(lambda a: a.dtype == kind and a.shape == value.array.shape)
        if found is not None and self.chance(0.6):
            return found
        for axis in range(len(shape)):
            if self.chance(0.25):
                shape[axis] = 1
        shape = shape[self.between(0, len(shape)) if self.chance(0.3) else 0:]
        return self.fresh(kind, tuple(shape))

    # ---- nodes
    def node(self, operator: str, inputs: list[Value | None], outputs: int = 1, domain: str = "", **attributes: Any) -> bool:
        """Adds the node unless the reference has no useful value for it. For com.microsoft onnxruntime is the reference,
        because the standard's evaluator has no such operators."""
        names = ["" if value is None else value.name for value in inputs]
        number = len(self.model.values) + len(self.model.nodes)
        results = [f"v{number}_{i}" if outputs > 1 else f"v{number}" for i in range(outputs)]
        proto = onnx.helper.make_node(operator, names, results, name=f"{operator}_{number}",
                                      domain=domain, **attributes)
        given = {name: self.model.values[name] for name in names if name}
        data = {name: np.asarray(value.array) for name, value in given.items()}
        constants = [name for name in given if name in self.model.constants] if domain else []
        graph = onnx.helper.make_graph(
            [proto], "one", [self.model.info(name) for name in given if name not in constants],
            [onnx.ValueInfoProto(name=name) if domain else
             onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in results],
            [onnx.numpy_helper.from_array(data.pop(name), name) for name in constants])
        model = onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=10)
        try:
            if domain == "com.microsoft":
                options = onnxruntime.SessionOptions()
                options.log_severity_level = 4
                arrays = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                      providers=["CPUExecutionProvider"]).run(None, data)
            else:
                if not domain:
                    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
                arrays = onnx.reference.ReferenceEvaluator(model).run(
                    None, {name: value.array for name, value in given.items()})
        except Exception:
            return False
        for array in arrays:
            if not isinstance(array, (np.ndarray, np.generic)) or np.size(array) > self.sizes.most_elements or np.size(array) == 0:
                return False
            if array.dtype.kind == "f" and not np.all(np.abs(array.astype(np.float64)) < 1e3):
                return False
            if array.dtype.kind not in "fiub":
                return False
        exact = all(value.exact for value in given.values())
        for name, array in zip(results, arrays):
            array = np.asarray(array)
            self.model.values[name] = Value(name, array, array.dtype.kind != "f" or (exact and is_exact(array)))
        self.model.nodes.append(Node(proto, names, results))
        return True

    def axis(self, value: Value) -> int:
        rank = value.array.ndim
        return self.between(-rank, rank - 1)

    def step(self) -> bool:
        return self.pick(KINDS)(self)

    def make(self) -> Model:
        wanted, tries = self.between(self.sizes.fewest_nodes, self.sizes.most_nodes), 0
        while len(self.model.nodes) < wanted and tries < 400:
            tries += 1
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self.step()
        return self.model


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
        size = m.pick([1, 3, 5])  # onnxruntime takes no even ones
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


# Cases in which the reference evaluator contradicts the standard, and onnxruntime agrees with it or refuses, are left out;
# comments with "reference:" name them.
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
    """Places of the grid are drawn; which of two elements is the nearer one jumps, so that nothing lies between them."""
    x = m.existing(lambda a: a.ndim in (4, 5) and a.dtype == np.float32 and a.size <= 400) or m.fresh(np.float32, (1, 2, 4, 5))
    spatial = x.array.ndim - 2
    mode = m.pick(["linear", "linear", "cubic"]) if spatial == 2 else "linear"
    # onnxruntime moves the elements around a place to the border, and not the place, in cubic mode
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
    """The same on 8-bit numbers; scales are powers of two, so that no result lies near a tie in one engine alone."""
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


# ---- Running -----------------------------------------------------------------------------------------------------------

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
            ended = "took longer than a minute a model"
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
    """The verdict on a difference, and why there is none."""
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
    if not bad:  # only all outputs together show it
        write_case(kept, model, model.leaves(), set())
        return kept, runner.verdicts([kept])[kept.name], "unwitnessed", "only several outputs together show it"
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
    """Tries these seeds with a folder of its own, prints differences, and sends how many there were of each verdict."""
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
            model = Maker(seed, LARGE if options.large else SMALL).make()
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
    parser.add_argument("--seed", type=int, default=0, help="of the first model; the next one has the next")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--batch", type=int, default=20, help="models in one process of hoist")
    parser.add_argument("--jobs", type=int, default=1, help="so many batches side by side")
    parser.add_argument("--time", type=float, default=0, help="begin no batch after so many seconds")
    parser.add_argument("--large", action="store_true", help="few nodes over arrays of up to 300,000 elements")
    parser.add_argument("--interpret", action="store_true", help="evaluate programs, without a device")
    parser.add_argument("--target", action="append", default=[], type="--target={}".format,
                        help="what the kernels become, as hoist test takes it: native, for one")
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
