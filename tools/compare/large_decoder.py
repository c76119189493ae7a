"""Writes a decoder with random weights as external data: for measuring memory, not for text.

    build/compare/bin/python tools/compare/large_decoder.py OUTPUT.onnx [--width 2048] [--layers 11] [--bits 4] ...

The model reads tokens and their first position, and keeps the last keys and values of each layer (past_key_I ->
present_key_I). --bits 4 and 8 store weights as MatMulNBits, in blocks of 32.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

BLOCK = 32


class Decoder:
    def __init__(self, path: Path, bits: int, tokens: int):
        self.path, self.bits, self.tokens = path, bits, tokens
        self.data = (path.parent / (path.name + ".data")).open("wb")
        self.random = np.random.default_rng(1)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.types: list[onnx.ValueInfoProto] = []  # of contributed operators, which ONNX does not infer
        self.parameters = 0

    def node(self, operation: str, name: str, inputs: list[str], **attributes) -> str:
        domain = "com.microsoft" if operation == "MatMulNBits" else ""
        self.nodes.append(helper.make_node(operation, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def small(self, name: str, values, kind: np.dtype = np.int64) -> str:
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def external(self, name: str, values: np.ndarray) -> str:
        self.data.seek(-self.data.tell() % 4096, 1)
        tensor = TensorProto(name=name, dims=values.shape, data_location=TensorProto.EXTERNAL,
                             data_type=helper.np_dtype_to_tensor_dtype(values.dtype))
        place = {"location": self.path.name + ".data", "offset": self.data.tell(), "length": values.nbytes}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        self.data.write(values.tobytes())
        self.constants.append(tensor)
        return name

    def floats(self, name: str, shape: tuple[int, ...], scale: float) -> str:
        self.parameters += int(np.prod(shape))
        return self.external(name, self.random.standard_normal(shape, np.float32) * np.float32(scale))

    def product(self, name: str, x: str, rows: int, columns: int) -> str:
        if self.bits == 32:
            return self.node("MatMul", name, [x, self.floats(name + ".weight", (rows, columns), rows**-0.5)])
        self.parameters += rows * columns
        blocks = -(-rows // BLOCK)
        packed = self.random.integers(0, 256, (columns, blocks, BLOCK * self.bits // 8), np.uint8)
        spread = (1 << self.bits) / 12**0.5 * rows**0.5
        scales = self.random.uniform(0.5, 1.5, columns * blocks).astype(np.float32) / np.float32(spread)
        self.types.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, self.tokens, columns]))
        return self.node("MatMulNBits", name, [x, self.external(name + ".weight", packed),
                                               self.external(name + ".scales", scales)],
                         K=rows, N=columns, bits=self.bits, block_size=BLOCK)

    def normalised(self, name: str, x: str, width: int) -> str:
        return self.node("RMSNormalization", name, [x, self.external(name + ".scale", np.ones(width, np.float32))],
                         axis=-1, epsilon=1e-5)

    def written(self) -> None:
        self.data.close()
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, self.constants,
                                  value_info=self.types)
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), self.path)


def attention(d: Decoder, name: str, x: str, given: argparse.Namespace) -> str:
    heads, width, length, tokens = given.heads, given.width, given.context, given.tokens
    size = width // heads

    def by_head(kind: str, turned: bool) -> str:
        value = d.node("Transpose", f"{name}.{kind}.heads", [
            d.node("Reshape", f"{name}.{kind}.split", [d.product(f"{name}.{kind}", x, width, width), "split"])],
            perm=[0, 2, 1, 3])
        if not turned:
            return value
        return d.node("RotaryEmbedding", f"{name}.{kind}.turned", [value, "cosines", "sines", "places"])

    def kept(kind: str, new: str) -> str:
        number = name.rsplit("_", 1)[1]
        past, present = f"past_{kind}_{number}", f"present_{kind}_{number}"
        for values, value in ((d.inputs, past), (d.outputs, present)):
            values.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, heads, length, size]))
        joined = d.node("Concat", present + ".joined", [past, new], axis=2)
        return d.node("Slice", present, [joined, "first_kept", "last_kept", "axis_of_places"])

    query = by_head("query", True)
    key, value = kept("key", by_head("key", True)), kept("value", by_head("value", False))
    columns = d.node("Transpose", name + ".key.columns", [key], perm=[0, 1, 3, 2])
    scores = d.node("MatMul", name + ".scores", [query, columns])
    scaled = d.node("Mul", name + ".scaled", [scores, d.small(name + ".scale", size**-0.5, np.float32)])
    masked = d.node("Where", name + ".masked", ["visible", scaled, "hidden"])
    shares = d.node("Softmax", name + ".shares", [masked], axis=-1)
    mixed = d.node("Transpose", name + ".rows", [d.node("MatMul", name + ".mixed", [shares, value])], perm=[0, 2, 1, 3])
    return d.product(name + ".output", d.node("Reshape", name + ".joined", [mixed, "join"]), width, width)


def positions(d: Decoder, given: argparse.Namespace) -> None:
    """The positions of the tokens and of the keys, and the keys that each token sees."""
    length, tokens, size = given.context, given.tokens, given.width // given.heads
    d.inputs.append(helper.make_tensor_value_info("position", TensorProto.INT64, [1]))
    rates = np.outer(np.arange(given.positions), 10000.0 ** (-np.arange(0, size, 2) / size))
    d.external("cosines", np.cos(rates).astype(np.float32))
    d.external("sines", np.sin(rates).astype(np.float32))
    d.small("split", [1, tokens, given.heads, size])
    d.small("join", [1, tokens, given.width])
    d.small("first_kept", [tokens])
    d.small("last_kept", [length + tokens])
    d.small("axis_of_places", [2])
    d.small("hidden", -1e9, np.float32)
    d.node("Add", "places", ["position", d.small("steps", [np.arange(tokens)])])
    d.node("Unsqueeze", "token_places", ["places", d.small("last_axis", [-1])])
    d.node("Add", "key_places", ["position", d.small("key_steps", np.arange(tokens - length, tokens))])
    past = d.node("LessOrEqual", "past", ["key_places", "token_places"])
    d.node("And", "visible", [past, d.node("GreaterOrEqual", "filled", ["key_places", d.small("zero", [0])])])


def build(given: argparse.Namespace) -> int:
    d = Decoder(given.output, given.bits, given.tokens)
    d.inputs.append(helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, given.tokens]))
    positions(d, given)
    x = d.node("Gather", "embedded", [d.floats("embedding", (given.words, given.width), 1.0), "tokens"], axis=0)
    for i in range(given.layers):
        attended = attention(d, f"attention_{i}", d.normalised(f"before_{i}", x, given.width), given)
        x = d.node("Add", f"sum_{i}", [x, attended])
        y = d.normalised(f"after_{i}", x, given.width)
        gate = d.product(f"gate_{i}", y, given.width, given.hidden)
        active = d.node("Mul", f"active_{i}", [gate, d.node("Sigmoid", f"share_{i}", [gate])])
        both = d.node("Mul", f"both_{i}", [active, d.product(f"up_{i}", y, given.width, given.hidden)])
        x = d.node("Add", f"layer_{i}", [x, d.product(f"down_{i}", both, given.hidden, given.width)])
    d.product("logits", d.normalised("last", x, given.width), given.width, given.words)
    d.outputs.insert(0, helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, given.tokens, given.words]))
    d.written()
    return d.parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    sizes = {"width": 2048, "hidden": 5632, "heads": 16, "layers": 11, "words": 32000, "tokens": 1, "context": 128,
             "positions": 2048}
    for name, value in sizes.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--bits", type=int, default=32, choices=(4, 8, 32))
    given = parser.parse_args()
    print(f"{build(given):,} parameters")


if __name__ == "__main__":
    main()
