"""Builds ONNX networks node by node, with weights drawn from a seeded generator.

A value carries the name of the node that makes it, a weight the name of its node and its role ("conv1/weight"), so
the names that a user sees in an inspection are the ones written here. Weights are He-scaled: a layer followed by a
ReLU keeps the variance of its input. Anything that the helpers do not cover goes through `node` and `parameter`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]


class Network:
    """An ONNX graph under construction. Nodes are added in an order in which they can be computed."""

    def __init__(self, name: str, opset: int, seed: int) -> None:
        self.name = name
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.parameters: dict[str, np.ndarray] = {}
        self.constants: set[str] = set()  # parameters that training leaves alone
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.channels: dict[str, int] = {}  # extent of the channel axis, by value

    # -- the plain parts ----------------------------------------------------------------------------------------

    def input(self, name: str, shape: Shape, channels: int | None = None) -> str:
        """Declares a float input; string dimensions are symbolic."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        if channels is not None:
            self.channels[name] = channels
        return name

    def output(self, name: str, shape: Shape) -> None:
        """Declares the value `name` a float output."""
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def parameter(self, name: str, value: np.ndarray, trained: bool = True) -> str:
        """Adds an initialiser. Floats are stored as float32, integers as int64."""
        if name in self.parameters:
            raise ValueError(f"parameter {name} exists already")
        kind = np.float32 if np.issubdtype(np.asarray(value).dtype, np.floating) else np.int64
        self.parameters[name] = np.array(value, kind, order="C")
        if not trained:
            self.constants.add(name)
        return name

    def constant(self, name: str, value: Any) -> str:
        """Adds an initialiser that training leaves alone."""
        return self.parameter(name, np.asarray(value), trained=False)

    def normal(self, shape: Sequence[int], deviation: float) -> np.ndarray:
        """Draws float32 numbers of mean 0 from the network's generator."""
        return self.random.standard_normal(tuple(shape), dtype=np.float32) * np.float32(deviation)

    def node(
        self, operator: str, name: str, inputs: Sequence[str], output: str | None = None, **attributes: Any
    ) -> str:
        """Adds a node with one output, named like the node unless `output` is given; returns the output."""
        result = output or name
        self.nodes.append(helper.make_node(operator, list(inputs), [result], name=name, **attributes))
        if operator in ("Relu", "Clip", "MaxPool", "GlobalAveragePool", "Add", "BatchNormalization"):
            if inputs[0] in self.channels:
                self.channels[result] = self.channels[inputs[0]]
        return result

    def split(self, name: str, x: str, lengths: str, outputs: Sequence[str], axis: int) -> None:
        """Adds a Split into parts of these lengths."""
        self.nodes.append(helper.make_node("Split", [x, lengths], list(outputs), name=name, axis=axis))

    # -- layers -------------------------------------------------------------------------------------------------

    def convolution(
        self, name: str, x: str, channels: int, kernel: int, stride: int = 1, padding: int | None = None,
        groups: int = 1, bias: bool = False, gain: float = 2.0,
    ) -> str:
        """A square 2-D convolution; `padding` keeps the extent by default. `gain` is the variance that the
        layer multiplies a ReLU'd input's mean square by, 1 for layers without an activation."""
        inputs = self.channels[x]
        pad = kernel // 2 if padding is None else padding
        fan_in = inputs // groups * kernel * kernel
        weight = self.normal((channels, inputs // groups, kernel, kernel), np.sqrt(gain / fan_in))
        operands = [x, self.parameter(f"{name}/weight", weight)]
        if bias:
            operands.append(self.parameter(f"{name}/bias", self.normal((channels,), 0.05)))
        self.channels[name] = channels
        return self.node(
            "Conv", name, operands, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4,
            dilations=[1, 1], group=groups,
        )

    def batch_normalization(self, name: str, x: str, scale: float | None = None) -> str:
        """Batch normalisation with statistics and an affine part near the identity, times `scale`; 1, 0, 0, 1 if it is None."""
        channels = self.channels[x]
        if scale is None:
            gamma, beta = np.ones(channels), np.zeros(channels)
            mean, variance = np.zeros(channels), np.ones(channels)
        else:
            gamma = self.random.uniform(0.8, 1.2, channels) * scale
            beta, mean = self.normal((channels,), 0.1), self.normal((channels,), 0.1)
            variance = self.random.uniform(0.8, 1.2, channels)
        operands = [
            x,
            self.parameter(f"{name}/scale", gamma.astype(np.float32)),
            self.parameter(f"{name}/bias", beta.astype(np.float32)),
            self.parameter(f"{name}/mean", mean.astype(np.float32), trained=False),
            self.parameter(f"{name}/variance", variance.astype(np.float32), trained=False),
        ]
        return self.node("BatchNormalization", name, operands, epsilon=1e-5)

    def relu(self, name: str, x: str) -> str:
        return self.node("Relu", name, [x])

    def fully_connected(
        self, name: str, x: str, inputs: int, outputs: int, gain: float = 2.0, output: str | None = None
    ) -> str:
        """A Gemm of [N, inputs] with a weight [outputs, inputs] and a bias."""
        weight = self.parameter(f"{name}/weight", self.normal((outputs, inputs), np.sqrt(gain / inputs)))
        bias = self.parameter(f"{name}/bias", self.normal((outputs,), 0.05))
        return self.node("Gemm", name, [x, weight, bias], output=output, transB=1)

    def projection(self, name: str, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """MatMul over the last axis of a value of any rank, then Add; the nodes are name/matmul and name/add."""
        weight = self.parameter(f"{name}/weight", self.normal((inputs, outputs), np.sqrt(gain / inputs)))
        bias = self.parameter(f"{name}/bias", self.normal((outputs,), 0.02))
        return self.node("Add", f"{name}/add", [self.node("MatMul", f"{name}/matmul", [x, weight]), bias])

    def layer_normalization(self, name: str, x: str, width: int, output: str | None = None) -> str:
        scale = self.parameter(f"{name}/scale", np.ones(width, np.float32))
        bias = self.parameter(f"{name}/bias", np.zeros(width, np.float32))
        return self.node("LayerNormalization", name, [x, scale, bias], output=output, axis=-1, epsilon=1e-5)

    def gelu(self, name: str, x: str) -> str:
        """One Gelu node from opset 20 on; before that x * (1 + erf(x / sqrt 2)) * 0.5, as exporters write it."""
        if self.opset >= 20:
            return self.node("Gelu", name, [x])
        root = self.constant(f"{name}/square_root_of_two", np.float32(np.sqrt(2)))
        one = self.constant(f"{name}/one", np.float32(1))
        half = self.constant(f"{name}/half", np.float32(0.5))
        error = self.node("Erf", f"{name}/erf", [self.node("Div", f"{name}/divide", [x, root])])
        weight = self.node("Add", f"{name}/add", [error, one])
        return self.node("Mul", f"{name}/halve", [self.node("Mul", f"{name}/multiply", [x, weight]), half])

    def attention(self, name: str, x: str, width: int, heads: int) -> str:
        """Self-attention over the tokens of a value [N, tokens, width]."""
        head = width // heads
        split = self.constant(f"{name}/split_heads", np.array([0, 0, heads, head]))
        parts = {}
        for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            y = self.projection(f"{name}/{part}", x, width, width)
            y = self.node("Reshape", f"{name}/{part}/split_heads", [y, split])
            parts[part] = self.node("Transpose", f"{name}/{part}/transpose", [y], perm=order)
        scores = self.node("MatMul", f"{name}/scores", [parts["query"], parts["key"]])
        factor = self.constant(f"{name}/scale_factor", np.float32(1 / np.sqrt(head)))
        scores = self.node("Mul", f"{name}/scale", [scores, factor])
        shares = self.node("Softmax", f"{name}/softmax", [scores], axis=-1)
        mixed = self.node("MatMul", f"{name}/context", [shares, parts["value"]])
        mixed = self.node("Transpose", f"{name}/transpose", [mixed], perm=[0, 2, 1, 3])
        merge = self.constant(f"{name}/merge_heads_shape", np.array([0, 0, width]))
        mixed = self.node("Reshape", f"{name}/merge_heads", [mixed, merge])
        return self.projection(f"{name}/output", mixed, width, width)

    def encoder_block(self, name: str, x: str, width: int, heads: int, hidden: int) -> str:
        """A transformer encoder block that normalises before attention and before the two-layer perceptron."""
        y = self.attention(f"{name}/attention", self.layer_normalization(f"{name}/normalize1", x, width), width, heads)
        x = self.node("Add", f"{name}/add1", [x, y])
        y = self.projection(f"{name}/perceptron1", self.layer_normalization(f"{name}/normalize2", x, width), width,
                            hidden, gain=2.0)
        y = self.projection(f"{name}/perceptron2", self.gelu(f"{name}/gelu", y), hidden, width)
        return self.node("Add", f"{name}/add2", [x, y])

    # -- the result ---------------------------------------------------------------------------------------------

    def model(self) -> onnx.ModelProto:
        """The finished model, checked; with an IR version that every runtime from the time of the opset reads."""
        initializers = [numpy_helper.from_array(value, name) for name, value in self.parameters.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="hoist-models",
            ir_version=8 if self.opset < 20 else 9,
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def write(self, path: Path) -> None:
        """Writes the model to `path`; the same network gives the same bytes."""
        path.write_bytes(self.model().SerializeToString(deterministic=True))
