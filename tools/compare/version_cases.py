"""Cases of versions.py: one node with its expected results, the random choices for it, and the makers by operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
import onnx.reference

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
    fixed: tuple[int, ...] = ()  # operands that must be constants: shapes, axes
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
