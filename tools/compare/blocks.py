"""Blocks of published networks, each a model with extents that no network has: for finding performance cliffs.

BLOCKS maps a name to a function that builds the model. Extents and widths are odd, prime or just above a power of two,
next to common ones, so that tails of vectors, tiles and work-groups are measured as well as full ones.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Iterator, Sequence

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from network import Network  # noqa: E402  (the builder of models/)

Builder = Callable[[], Network]


def finished(network: Network, value: str, shape: Sequence[int]) -> Network:
    """The network with this value as its output y."""
    network.node("Identity", "y", [value])
    network.output("y", shape)
    return network


def mlp(batch: int, tokens: int, width: int, hidden: int) -> Builder:
    """Two products with GELU between them and a residual sum, as in transformers."""
    def build() -> Network:
        n = Network("mlp", opset=17, seed=1)
        x = n.input("x", [batch, tokens, width])
        y = n.projection("up", n.layer_normalization("normalise", x, width), width, hidden, gain=2.0)
        y = n.projection("down", n.gelu("gelu", y), hidden, width)
        return finished(n, n.node("Add", "sum", [x, y]), [batch, tokens, width])

    return build


def gated_mlp(batch: int, tokens: int, width: int, hidden: int) -> Builder:
    """Two products whose results are multiplied, one of them by its sigmoid (SwiGLU), and RMS normalisation as nodes."""
    def build() -> Network:
        n = Network("gated", opset=17, seed=1)
        x = n.input("x", [batch, tokens, width])
        square = n.node("ReduceMean", "mean", [n.node("Mul", "square", [x, x])], axes=[-1], keepdims=1)
        root = n.node("Sqrt", "root", [n.node("Add", "shifted", [square, n.constant("epsilon", np.float32(1e-6))])])
        scaled = n.node("Mul", "scaled", [n.node("Div", "divided", [x, root]), n.parameter("scale", np.ones(width))])
        gate = n.projection("gate", scaled, width, hidden)
        gate = n.node("Mul", "silu", [gate, n.node("Sigmoid", "sigmoid", [gate])])
        y = n.node("Mul", "gated", [gate, n.projection("up", scaled, width, hidden)])
        return finished(n, n.node("Add", "sum", [x, n.projection("down", y, hidden, width)]), [batch, tokens, width])

    return build


def attention(batch: int, tokens: int, width: int, heads: int) -> Builder:
    """Self-attention with its four products and a residual sum."""
    def build() -> Network:
        n = Network("attention", opset=17, seed=1)
        x = n.input("x", [batch, tokens, width])
        y = n.attention("attention", n.layer_normalization("normalise", x, width), width, heads)
        return finished(n, n.node("Add", "sum", [x, y]), [batch, tokens, width])

    return build


def window_attention(extent: int, window: int, width: int, heads: int) -> Builder:
    """Self-attention inside shifted windows of an image: roll, partition, attention, merge, roll back (Swin)."""
    def build() -> Network:
        n = Network("windows", opset=17, seed=1)
        count, shift = extent // window, window // 2
        x = n.input("x", [1, extent, extent, width])

        def rolled(name: str, value: str, by: int) -> str:
            for axis in (1, 2):
                parts = n.constant(f"{name}/parts{axis}", np.array([by % extent, extent - by % extent]))
                first, second = f"{name}/first{axis}", f"{name}/second{axis}"
                n.split(f"{name}/split{axis}", value, parts, [first, second], axis)
                value = n.node("Concat", f"{name}/concat{axis}", [second, first], axis=axis)
            return value

        def reshaped(name: str, value: str, shape: Sequence[int]) -> str:
            return n.node("Reshape", name, [value, n.constant(f"{name}/shape", np.array(shape))])

        y = rolled("roll", n.layer_normalization("normalise", x, width), shift)
        y = reshaped("grid", y, [1, count, window, count, window, width])
        y = n.node("Transpose", "partition", [y], perm=[0, 1, 3, 2, 4, 5])
        y = n.attention("attention", reshaped("windows", y, [count * count, window * window, width]), width, heads)
        y = reshaped("merge", y, [1, count, count, window, window, width])
        y = n.node("Transpose", "image", [y], perm=[0, 1, 3, 2, 4, 5])
        y = rolled("back", reshaped("rows", y, [1, extent, extent, width]), -shift)
        return finished(n, n.node("Add", "sum", [x, y]), [1, extent, extent, width])

    return build


def image(name: str, batch: int, channels: int, extent: int) -> tuple[Network, str]:
    n = Network(name, opset=17, seed=1)
    return n, n.input("x", [batch, channels, extent, extent], channels)


def excited(n: Network, x: str, channels: int, squeezed: int, gate: str = "Sigmoid") -> str:
    """The image with its channels weighted by their means (squeeze and excite)."""
    mean = n.node("GlobalAveragePool", "squeeze", [x])
    n.channels[mean] = channels
    mean = n.relu("squeezed", n.convolution("reduce", mean, squeezed, 1, bias=True))
    n.channels[mean] = squeezed
    return n.node("Mul", "excited", [x, n.node(gate, "gate", [n.convolution("expand", mean, channels, 1, bias=True)])])


def squeeze_and_excite(batch: int, channels: int, extent: int, squeezed: int) -> Builder:
    def build() -> Network:
        n, x = image("excite", batch, channels, extent)
        y = n.relu("relu", n.convolution("conv", x, channels, 3, bias=True))
        return finished(n, excited(n, y, channels, squeezed), [batch, channels, extent, extent])

    return build


def inverted_residual(batch: int, channels: int, extent: int, expansion: int, kernel: int, squeezed: int = 0) -> Builder:
    """A 1x1, a depthwise and a 1x1 convolution with a residual sum, with squeeze and excite if `squeezed` is not 0."""
    def build() -> Network:
        n, x = image("inverted", batch, channels, extent)
        wide = channels * expansion
        y = n.node("HardSwish", "act1", [n.convolution("up", x, wide, 1, bias=True)])
        n.channels[y] = wide
        y = n.node("HardSwish", "act2", [n.convolution("depthwise", y, wide, kernel, groups=wide, bias=True)])
        n.channels[y] = wide
        if squeezed:
            y = excited(n, y, wide, squeezed, "HardSigmoid")
            n.channels[y] = wide
        y = n.convolution("down", y, channels, 1, bias=True, gain=1.0)
        return finished(n, n.node("Add", "sum", [x, y]), [batch, channels, extent, extent])

    return build


def bottleneck(batch: int, channels: int, extent: int, inner: int, groups: int = 1) -> Builder:
    """A 1x1, a 3x3 (in groups) and a 1x1 convolution with a residual sum (ResNet, ResNeXt, RegNet)."""
    def build() -> Network:
        n, x = image("bottleneck", batch, channels, extent)
        y = n.relu("relu1", n.convolution("reduce", x, inner, 1, bias=True))
        y = n.relu("relu2", n.convolution("middle", y, inner, 3, groups=groups, bias=True))
        y = n.convolution("expand", y, channels, 1, bias=True, gain=1.0)
        return finished(n, n.relu("relu3", n.node("Add", "sum", [x, y])), [batch, channels, extent, extent])

    return build


def convnext(batch: int, channels: int, extent: int) -> Builder:
    """A 7x7 depthwise convolution, then layer normalisation and two products over channels, in NHWC (ConvNeXt)."""
    def build() -> Network:
        n, x = image("convnext", batch, channels, extent)
        y = n.convolution("depthwise", x, channels, 7, groups=channels, bias=True)
        y = n.node("Transpose", "nhwc", [y], perm=[0, 2, 3, 1])
        y = n.projection("up", n.layer_normalization("normalise", y, channels), channels, 4 * channels, gain=2.0)
        y = n.projection("down", n.gelu("gelu", y), 4 * channels, channels)
        y = n.node("Mul", "scaled", [y, n.parameter("scale", np.full(channels, 0.1))])
        y = n.node("Transpose", "nchw", [y], perm=[0, 3, 1, 2])
        return finished(n, n.node("Add", "sum", [x, y]), [batch, channels, extent, extent])

    return build


def recurrent(operator: str, length: int, batch: int, inputs: int, hidden: int) -> Builder:
    """A layer of LSTM or GRU; a length of 1 is the step of a stream."""
    def build() -> Network:
        n = Network("recurrent", opset=17, seed=1)
        gates = {"LSTM": 4, "GRU": 3}[operator]
        x = n.input("x", [length, batch, inputs])
        weights = n.parameter("w", n.normal((1, gates * hidden, inputs), inputs**-0.5))
        again = n.parameter("r", n.normal((1, gates * hidden, hidden), hidden**-0.5))
        bias = n.parameter("b", n.normal((1, 2 * gates * hidden), 0.05))
        y = n.node(operator, "recurrent", [x, weights, again, bias], hidden_size=hidden)
        return finished(n, y, [length, 1, batch, hidden])

    return build


def blocks() -> Iterator[tuple[str, Builder]]:
    for sizes in ((1, 1, 768, 3072), (1, 17, 96, 384), (1, 77, 513, 2051), (1, 197, 192, 768), (3, 49, 320, 1280)):
        yield "mlp_" + "x".join(map(str, sizes)), mlp(*sizes)
    for sizes in ((1, 1, 1024, 2816), (1, 33, 257, 688), (1, 129, 512, 1376)):
        yield "gated_mlp_" + "x".join(map(str, sizes)), gated_mlp(*sizes)
    for sizes in ((1, 17, 96, 3), (1, 65, 160, 5), (1, 197, 192, 3), (1, 333, 264, 11), (2, 77, 512, 8), (1, 1025, 128, 2)):
        yield "attention_" + "x".join(map(str, sizes)), attention(*sizes)
    for sizes in ((56, 7, 96, 3), (21, 7, 120, 5), (40, 5, 64, 4), (24, 12, 180, 6)):
        yield "window_attention_" + "x".join(map(str, sizes)), window_attention(*sizes)
    for sizes in ((1, 24, 57, 6), (1, 64, 28, 16), (1, 96, 31, 8), (2, 130, 15, 33)):
        yield "squeeze_and_excite_" + "x".join(map(str, sizes)), squeeze_and_excite(*sizes)
    for sizes in ((1, 24, 56, 6, 3), (1, 40, 29, 3, 5, 30), (1, 72, 17, 4, 5, 73), (1, 17, 99, 4, 3), (1, 160, 7, 6, 3),
                  (3, 33, 23, 6, 7)):
        yield "inverted_residual_" + "x".join(map(str, sizes)), inverted_residual(*sizes)
    for sizes in ((1, 256, 56, 64), (1, 200, 27, 50), (1, 512, 13, 130), (1, 256, 56, 128, 32), (1, 147, 35, 49, 7),
                  (2, 1040, 9, 260)):
        yield "bottleneck_" + "x".join(map(str, sizes)), bottleneck(*sizes)
    for sizes in ((1, 96, 56), (1, 120, 33), (1, 200, 17), (2, 384, 14), (1, 769, 7)):
        yield "convnext_" + "x".join(map(str, sizes)), convnext(*sizes)
    for operator, *sizes in (("LSTM", 1, 1, 512, 512), ("LSTM", 1, 3, 193, 257), ("LSTM", 35, 1, 80, 130),
                             ("GRU", 1, 1, 256, 384), ("GRU", 50, 2, 40, 100)):
        yield f"{operator.lower()}_" + "x".join(map(str, sizes)), recurrent(operator, *sizes)


BLOCKS: dict[str, Builder] = dict(blocks())
