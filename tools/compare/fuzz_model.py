"""A random model of fuzz.py under construction: its values, and the random choices for nodes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
import onnx.reference
import onnxruntime

OPSET = 21
OPSETS = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", 3),
          onnx.helper.make_opsetid("com.microsoft", 1)]
FLOATS = [np.float32] * 6 + [np.float16, np.float64]
INTEGERS = [np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64]


@dataclass
class Sizes:
    extents: list[int]
    most_elements: int  # limit of the elements of an array
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
        for node in kept:  # a cut value is computed under another name
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
        """A value that broadcasts with the given one."""
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

    def make(self, kinds: list[Callable[[Maker], bool]]) -> Model:
        """Adds nodes of these kinds; each kind adds one node, or returns False."""
        wanted, tries = self.between(self.sizes.fewest_nodes, self.sizes.most_nodes), 0
        while len(self.model.nodes) < wanted and tries < 400:
            tries += 1
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self.pick(kinds)(self)
        return self.model
