"""Models as old exporters wrote them, hoist against the definitions of versions.py. Development only.

    build/compare/bin/python tools/compare/exporters.py --count 2000 --interpret     # without a device
    build/compare/bin/python tools/compare/exporters.py --seed 17 --count 1          # the model of one seed again
    build/compare/bin/python tools/compare/exporters.py --count 500 --target native

A model holds one to five layers of one opset from 1 to 28, each a random case of versions.py, and is then written in ways
that the standard, or onnxruntime, allows: constants are initialisers (in typed fields, raw, external with offsets, sparse,
or inputs of the graph as well), or Constant nodes of every attribute; layers are unsorted, unnamed or named alike; domains
are spelled out; bodies reuse the names of their siblings; layers are in branches, loops of one iteration and functions;
results pass through copies; there are unused outputs, layers and initialisers, and wrong declared shapes of
intermediate values. Models that differ, or are refused, stay in build/compare/work/exporters. Exit code 1 if any.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

import versions
from engines import WORK
from versions import Array, Case, Random

FOLDER = WORK / "exporters"


class Writer:
    """One graph, written from cases of one opset."""

    def __init__(self, seed: int, opset: int, folder: Path) -> None:
        self.r = Random(seed)
        self.opset = opset
        self.folder = folder
        self.nodes: list[onnx.NodeProto] = []
        self.given: list[onnx.ValueInfoProto] = []
        self.arrays: list[Array] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.expected: list[Array] = []
        self.constants: list[onnx.TensorProto] = []
        self.sparse: list[onnx.SparseTensorProto] = []
        self.declared: list[onnx.ValueInfoProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.external = bytearray()
        self.old_form = opset < 9 and self.r.chance(0.7)  # IR version 3: initialisers are inputs

    # ---- Values
    def info(self, name: str, array: Array, shape: Any = None) -> onnx.ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, array.shape if shape is None else shape)

    def given_value(self, name: str, array: Array) -> None:
        self.given.append(self.info(name, array))
        self.arrays.append(array)

    def tensor(self, name: str, array: Array) -> onnx.TensorProto:
        """The elements in a typed field, raw, or in another file."""
        raw = onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
        way = self.r.pick(["raw", "typed", "external"])
        if way == "typed" and array.dtype != np.bool_:
            elements = array.ravel()
            if array.dtype == np.float16:
                out = onnx.TensorProto(name=name, data_type=raw.data_type, dims=array.shape)
                out.int32_data.extend(int(bits) for bits in elements.view(np.uint16))
                return out
            return helper.make_tensor(name, raw.data_type, array.shape, [v.item() for v in elements])
        if way == "external" and not self.old_form and array.size:
            self.external.extend(b"\xff" * self.r.integer(0, 5))
            place = {"location": "weights.bin", "offset": str(len(self.external)), "length": str(len(raw.raw_data))}
            self.external.extend(raw.raw_data)
            raw.ClearField("raw_data")
            raw.data_location = onnx.TensorProto.EXTERNAL
            if not self.r.chance(0.7):
                del place["length"]
            for key, value in place.items():
                raw.external_data.add(key=key, value=value)
            if "length" not in place:  # to the end of the file: nothing may follow
                place["length"] = ""
                raw.external_data.add(key="length", value=str(array.nbytes))
        return raw

    def constant(self, name: str, array: Array) -> None:
        ways = ["initialiser", "initialiser", "node", "identity"]
        if self.opset >= 11 and array.ndim == 1 and array.size and array.dtype in (np.float32, np.int64):
            ways.append("sparse")
        way = self.r.pick(ways)
        if way == "node":
            self.nodes.append(self.constant_node(name, array))
        elif way == "sparse":
            places = np.flatnonzero(array)
            if not len(places):
                places = np.array([0])
            values = onnx.numpy_helper.from_array(array[places], name)
            indices = onnx.numpy_helper.from_array(places.astype(np.int64), f"{name}_places")
            sparse = helper.make_sparse_tensor(values, indices, array.shape)
            if self.r.chance(0.5):
                self.sparse.append(sparse)
            else:
                self.nodes.append(helper.make_node("Constant", [], [name], sparse_value=sparse))
        else:
            stored = f"{name}_stored" if way == "identity" else name
            self.constants.append(self.tensor(stored, array))
            if self.old_form:
                self.given.append(self.info(stored, array))
            if way == "identity":
                self.nodes.append(helper.make_node("Identity", [stored], [name]))

    def constant_node(self, name: str, array: Array) -> onnx.NodeProto:
        kind = array.dtype
        if self.opset >= 12 and kind in (np.float32, np.int64) and array.ndim <= 1 and array.size and self.r.chance(0.7):
            word = "float" if kind == np.float32 else "int"
            if array.ndim == 0:
                return helper.make_node("Constant", [], [name], **{f"value_{word}": array.item()})
            node = helper.make_node("Constant", [], [name])
            node.attribute.append(helper.make_attribute(f"value_{word}s", array.tolist()))
            return node
        return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(array, order="C")))

    # ---- Layers
    def add(self, case: Case, place: int) -> None:
        r, names = self.r, []
        for i, array in enumerate(case.inputs):
            name = "" if array is None else f"l{place}_x{i}"
            names.append(name)
            if array is None:
                continue
            if i in case.fixed or r.chance(0.4):
                self.constant(name, np.asarray(array))
            else:
                self.given_value(name, np.asarray(array))
        while names and not names[-1] and r.chance(0.7):
            names.pop()
        results = ["" if value is None else f"l{place}_y{i}" for i, value in enumerate(case.outputs)]
        node = helper.make_node(case.operation, names, results, name=r.pick(["", "layer", f"{case.operation}_{place}"]),
                                **case.attributes)
        if self.opset >= 2 and r.chance(0.1):
            node.domain = "ai.onnx"
        arrays = [np.asarray(v) for v in case.expected()]
        made = [n for n in results if n]
        way = r.pick(["graph"] * 5 + ["branch", "branch", "function", "loop"])
        if case.operation == "Scan" or (way == "loop" and self.opset < 11):
            way = "graph"
        if way == "branch":
            node = self.in_branch(node, made, arrays, place)
        elif way == "function" and self.opset >= 2:
            node = self.in_function(node, made, place)
        elif way == "loop":
            node = self.in_loop(node, made, arrays, place)
        self.nodes.append(node)
        for name, array in zip(made, arrays):
            self.result(name, array)
        if r.chance(0.2):
            self.nodes.append(helper.make_node("Identity", [made[0]], [f"l{place}_unused"]))

    def result(self, name: str, array: Array) -> None:
        r = self.r
        if r.chance(0.3):  # a wrong shape of a value inside, which shape inference has to correct
            self.declared.append(self.info(name, array, [n + 1 for n in array.shape] if r.chance(0.3) else array.shape))
        for step in range(r.integer(0, 2)):
            self.nodes.append(helper.make_node("Identity", [name], [f"{name}_{step}"]))
            name = f"{name}_{step}"
        shape = [r.pick([n, f"{name}_{d}"]) for d, n in enumerate(array.shape)] if r.chance(0.3) else None
        self.outputs.append(self.info(name, array, shape))
        self.expected.append(array)

    def in_branch(self, node: onnx.NodeProto, made: list[str], arrays: list[Array], place: int) -> onnx.NodeProto:
        """Both branches use the same names inside; what they read is captured or copied inside."""
        graphs = []
        for branch in ("then", "else"):
            body = onnx.NodeProto()
            body.CopyFrom(node)
            inside = {n: f"inside_{i}" for i, n in enumerate(node.output) if n}
            del body.output[:]
            body.output.extend(inside.get(n, "") for n in node.output)
            before = []
            if self.r.chance(0.4):
                for i, n in enumerate(node.input):
                    if n and self.r.chance(0.5):
                        before.append(helper.make_node("Identity", [n], [f"copy_{i}"]))
                        body.input[i] = f"copy_{i}"
            graphs.append(helper.make_graph([*before, body], self.r.pick([branch, "body"]), [],
                                            [self.info(inside[n], a) for n, a in zip(made, arrays)]))
        self.given_value(f"l{place}_condition", np.array([self.r.chance(0.5)]) if self.opset < 11 or self.r.chance(0.5)
                         else np.array(self.r.chance(0.5)))
        return helper.make_node("If", [f"l{place}_condition"], made, name="choice", then_branch=graphs[0],
                                else_branch=graphs[1])

    def in_loop(self, node: onnx.NodeProto, made: list[str], arrays: list[Array], place: int) -> onnx.NodeProto:
        """One or two iterations, each of which computes the layer's results again."""
        body = onnx.NodeProto()
        body.CopyFrom(node)
        inside = {n: f"inside_{i}" for i, n in enumerate(node.output) if n}
        del body.output[:]
        body.output.extend(inside.get(n, "") for n in node.output)
        boolean, whole = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
        info = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Identity", ["goes"], ["on"]), body], "body", [
            info("i", whole, []), info("goes", boolean, [])], [info("on", boolean, [])] + [
                self.info(inside[n], a) for n, a in zip(made, arrays)])
        times = self.r.integer(1, 2)
        self.constant(f"l{place}_times", np.array(times, np.int64))
        rows = [f"{n}_rows" for n in made]
        self.nodes.append(helper.make_node("Loop", [f"l{place}_times", ""], rows, body=graph))
        self.constants.append(onnx.numpy_helper.from_array(np.array(0, np.int64), f"l{place}_first"))
        for n, row in zip(made[1:], rows[1:]):
            self.nodes.append(helper.make_node("Gather", [row, f"l{place}_first"], [n]))
        return helper.make_node("Gather", [rows[0], f"l{place}_first"], [made[0]])

    def in_function(self, node: onnx.NodeProto, made: list[str], place: int) -> onnx.NodeProto:
        formal = [n for n in node.input if n]
        opsets = [helper.make_opsetid(self.r.pick(["", "ai.onnx"]), self.opset)]
        self.functions.append(helper.make_function("own", f"call_{place}", formal, made, [node], opsets))
        return helper.make_node(f"call_{place}", formal, made, name="call", domain="own")

    def model(self) -> onnx.ModelProto:
        r = self.r
        if r.chance(0.2):
            self.constants.append(onnx.numpy_helper.from_array(np.zeros(3, np.float32), "unused"))
            if self.old_form:
                self.given.append(self.info("unused", np.zeros(3, np.float32)))
        if r.chance(0.3):
            random.Random(r.integer(0, 1 << 30)).shuffle(self.nodes)
        graph = helper.make_graph(self.nodes, r.pick(["g", "", "a graph"]), self.given, self.outputs, self.constants,
                                  value_info=self.declared, sparse_initializer=self.sparse)
        opsets = [helper.make_opsetid(r.pick(["", "", "ai.onnx"]), self.opset)]
        if self.functions:
            opsets.append(helper.make_opsetid("own", 1))
        model = helper.make_model(graph, opset_imports=opsets, functions=self.functions,
                                  ir_version=10 if self.functions else 3 if self.old_form else r.pick([4, 7, 8, 10]))
        if self.external:
            (self.folder / "weights.bin").write_bytes(bytes(self.external))
        return model


def make_model(seed: int, names: list[str], folder: Path) -> tuple[onnx.ModelProto, list[Array], list[Array], str] | None:
    r = Random(seed)
    opset = r.integer(1, versions.NEWEST)
    writer = Writer(seed + 1_000_000_007, opset, folder)
    cases = []
    for _ in range(r.integer(1, 5)):
        since, make = versions.MAKERS[r.pick(names)]
        case = make(r, opset) if since[0] <= opset else None
        if case is not None:
            cases.append(case)
    for place, case in enumerate(cases):
        writer.add(case, place)
    if not cases:
        return None
    return writer.model(), writer.arrays, writer.expected, f"opset {opset}: {' '.join(c.operation for c in cases)}"


def write(seed: int, names: list[str], folder: Path) -> str | None:
    folder.mkdir(parents=True)
    made = make_model(seed, names, folder)
    if made is None:
        folder.rmdir()
        return None
    versions.write_data(folder, *made[:3])
    return made[3]


if __name__ == "__main__":
    sys.exit(versions.main(write, FOLDER, __doc__))
