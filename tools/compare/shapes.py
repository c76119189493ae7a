"""Shapes of layers, each a model of one layer with its usual successor: for finding performance cliffs.

SHAPES maps a name to a function that builds the model. Channels run from 1 to 1,024, extents from 1 to 224, batches are 1 and 8.
A layer of more than 4e9 multiplications is left out, as are shapes that no network uses.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Iterator, Sequence

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from network import Network  # noqa: E402  (the builder of models/)

Builder = Callable[[], Network]
MOST_MULTIPLICATIONS = 4e9


def single(build: Callable[[Network], tuple[str, Sequence[int]]]) -> Network:
    """A model around the layers that `build` adds, which returns the value's name and shape; a Relu writes the output."""
    network = Network("shape", opset=17, seed=1)
    value, shape = build(network)
    network.node("Relu", "relu", [value], output="y")
    network.output("y", shape)
    return network


def convolution(batch: int, channels: int, spatial: Sequence[int], outputs: int, kernel: Sequence[int], stride: int = 1,
                dilation: int = 1, groups: int = 1, transposed: bool = False) -> Builder:
    def build(network: Network) -> tuple[str, Sequence[int]]:
        rank = len(spatial)
        x = network.input("x", [batch, channels, *spatial])
        shape = (channels, outputs // groups, *kernel) if transposed else (outputs, channels // groups, *kernel)
        fan_in = channels // groups * int(np.prod(kernel))
        weight = network.parameter("weight", network.normal(shape, fan_in**-0.5))
        bias = network.parameter("bias", network.normal((outputs,), 0.05))
        reach = [dilation * (k - 1) for k in kernel]
        pads = [r // 2 for r in reach] + [r - r // 2 for r in reach]
        value = network.node("ConvTranspose" if transposed else "Conv", "conv", [x, weight, bias],
                             kernel_shape=list(kernel), strides=[stride] * rank, dilations=[dilation] * rank,
                             pads=pads, group=groups)
        extents = [(n - 1) * stride + 1 if transposed else (n - 1) // stride + 1 for n in spatial]
        return value, [batch, outputs, *extents]

    return lambda: single(build)


def product(batch: Sequence[int], rows: int, inner: int, columns: int, constant: bool = True) -> Builder:
    def build(network: Network) -> tuple[str, Sequence[int]]:
        a = network.input("a", [*batch, rows, inner])
        b = (network.parameter("b", network.normal((inner, columns), inner**-0.5)) if constant
             else network.input("b", [*batch, inner, columns]))
        return network.node("MatMul", "matmul", [a, b]), [*batch, rows, columns]

    return lambda: single(build)


def operator(name: str, shape: Sequence[int], result: Sequence[int] | None = None,
             constants: Sequence[np.ndarray] = (), skip: int = 0, **attributes: object) -> Builder:
    """One operator with an input and constants, after `skip` omitted inputs."""
    def build(network: Network) -> tuple[str, Sequence[int]]:
        x = network.input("x", list(shape))
        operands = [x, *[""] * skip, *(network.constant(f"c{i}", c) for i, c in enumerate(constants))]
        return network.node(name, "layer", operands, **attributes), list(result or shape)

    return lambda: single(build)


def elementwise(shape: Sequence[int], other: Sequence[int]) -> Builder:
    def build(network: Network) -> tuple[str, Sequence[int]]:
        a, b = network.input("a", list(shape)), network.input("b", list(other))
        return network.node("Mul", "scaled", [network.node("Add", "sum", [a, b]), b]), list(shape)

    return lambda: single(build)


def text(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def convolutions() -> Iterator[tuple[str, Builder]]:
    pictures = [(224, 16, 16), (112, 32, 32), (112, 16, 64), (56, 64, 64), (56, 24, 144), (28, 128, 128), (28, 40, 240),
                (14, 256, 256), (14, 96, 576), (7, 512, 512), (7, 160, 960), (1, 1024, 256), (10, 64, 64), (49, 3, 7)]
    for kernel in (1, 3, 5):
        for extent, channels, outputs in pictures:
            for batch in (1, 8):
                if batch * extent**2 * channels * outputs * kernel**2 > MOST_MULTIPLICATIONS or kernel > extent:
                    continue
                if kernel == 5 and batch == 8:
                    continue
                yield (f"conv{kernel}x{kernel}_{batch}x{extent}_{channels}_{outputs}",
                       convolution(batch, channels, [extent] * 2, outputs, [kernel] * 2))
    for extent, channels, outputs in pictures[2:11]:
        yield (f"strided3x3_{extent}_{channels}_{outputs}",
               convolution(1, channels, [extent] * 2, outputs, [3, 3], stride=2))
        yield (f"strided1x1_{extent}_{channels}_{outputs}",
               convolution(1, channels, [extent] * 2, outputs, [1, 1], stride=2))
    for extent, channels, outputs in pictures[3:9]:
        yield (f"dilated3x3_{extent}_{channels}_{outputs}",
               convolution(1, channels, [extent] * 2, outputs, [3, 3], dilation=2))
        yield (f"grouped3x3_{extent}_{channels}", convolution(1, channels, [extent] * 2, channels, [3, 3], groups=8))
        yield (f"transposed2x2_{extent}_{channels}_{outputs}",
               convolution(1, channels, [extent // 2] * 2, outputs, [3, 3], stride=2, transposed=True))
    for channels, extent in ((16, 112), (32, 112), (64, 56), (144, 56), (240, 28), (576, 14), (960, 7), (512, 14),
                             (24, 10), (128, 25)):
        for kernel in (3, 5):
            for stride in (1, 2):
                yield (f"depthwise{kernel}x{kernel}s{stride}_{extent}_{channels}",
                       convolution(1, channels, [extent] * 2, channels, [kernel] * 2, stride=stride, groups=channels))
        yield (f"depthwise3x3s1_8x{extent}_{channels}",
               convolution(8, channels, [extent] * 2, channels, [3, 3], groups=channels))
    for batch in (1, 8):
        for name, channels, extent, outputs, kernel, stride in (
                ("resnet", 3, 224, 64, 7, 2), ("mobilenet", 3, 224, 32, 3, 2), ("squeezenet", 3, 224, 64, 3, 2),
                ("vgg", 3, 224, 64, 3, 1), ("patches", 3, 224, 192, 16, 16), ("small", 3, 32, 16, 3, 1),
                ("grey", 1, 28, 8, 5, 1), ("keywords", 1, 49, 64, 7, 2)):
            yield (f"first_{name}_{batch}",
                   convolution(batch, channels, [extent] * 2, outputs, [kernel] * 2, stride=stride))
    for length, channels, outputs, kernel in ((16000, 1, 64, 80), (1000, 64, 64, 3), (128, 512, 512, 3),
                                              (1500, 80, 384, 3), (400, 256, 256, 9), (98, 40, 128, 5)):
        for stride in (1, 2):
            yield (f"one_dimensional_{length}_{channels}_{outputs}_{kernel}s{stride}",
                   convolution(1, channels, [length], outputs, [kernel], stride=stride))


def products() -> Iterator[tuple[str, Builder]]:
    for rows, inner, columns in ((1, 512, 1000), (1, 2048, 1000), (1, 1024, 4096), (1, 128, 10), (8, 512, 1000),
                                 (8, 1024, 1024), (4, 640, 128), (32, 256, 256), (64, 768, 768), (128, 768, 3072),
                                 (128, 3072, 768), (196, 192, 576), (196, 384, 1536), (512, 512, 512),
                                 (1024, 1024, 1024), (1000, 64, 64), (4096, 32, 32), (17, 33, 65), (50, 300, 7), (256, 512, 512), (8, 2048, 1000),
                                 (32, 1024, 1024), (49, 320, 1280), (77, 512, 512), (16, 64, 10)):
        yield f"product_{rows}x{inner}x{columns}", product([], rows, inner, columns)
    for heads, tokens, width in ((12, 128, 64), (8, 196, 32), (4, 64, 64), (12, 17, 64), (6, 512, 64)):
        yield f"scores_{heads}x{tokens}x{width}", product([heads], tokens, width, tokens, constant=False)
        yield f"context_{heads}x{tokens}x{width}", product([heads], tokens, tokens, width, constant=False)
    for batch, rows, inner, columns in ((8, 128, 768, 768), (8, 1, 512, 512), (64, 8, 64, 8)):
        yield f"batched_{batch}x{rows}x{inner}x{columns}", product([batch], rows, inner, columns)


def others() -> Iterator[tuple[str, Builder]]:
    for extent, channels in ((112, 64), (56, 64), (28, 192), (14, 512), (7, 1024)):
        half = (extent - 3) // 2 + 1
        yield (f"maxpool3s2_{extent}_{channels}",
               operator("MaxPool", [1, channels, extent, extent], [1, channels, half, half], kernel_shape=[3, 3],
                        strides=[2, 2]))
        yield (f"maxpool2s2_{extent}_{channels}",
               operator("MaxPool", [1, channels, extent, extent], [1, channels, extent // 2, extent // 2],
                        kernel_shape=[2, 2], strides=[2, 2]))
        yield (f"averagepool3s1_{extent}_{channels}",
               operator("AveragePool", [1, channels, extent, extent], kernel_shape=[3, 3], strides=[1, 1],
                        pads=[1, 1, 1, 1]))
        yield (f"globalpool_{extent}_{channels}",
               operator("GlobalAveragePool", [1, channels, extent, extent], [1, channels, 1, 1]))
    for shape in ([1, 1000], [8, 1000], [12, 128, 128], [1, 12, 512, 512], [196, 10], [1, 50257]):
        yield f"softmax_{text(shape)}", operator("Softmax", shape, axis=-1)
    for shape in ([1, 128, 768], [8, 128, 768], [1, 196, 192], [1, 17, 64], [1, 2048]):
        width = shape[-1]
        scale, shift = np.ones(width, np.float32), np.zeros(width, np.float32)
        yield (f"layernorm_{text(shape)}",
               operator("LayerNormalization", shape, constants=[scale, shift], axis=-1))
        yield f"mean_{text(shape)}", operator("ReduceMean", shape, [*shape[:-1], 1], axes=[-1], keepdims=1)
    for shape in ([1, 64, 56, 56], [1, 32, 112, 112], [8, 128, 14, 14]):
        channels = shape[1]
        scale, shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        yield f"instancenorm_{text(shape)}", operator("InstanceNormalization", shape, constants=[scale, shift])
    for shape, factor in (([1, 64, 28, 28], 2), ([1, 3, 112, 112], 2), ([1, 128, 14, 14], 2), ([1, 16, 56, 56], 4)):
        for mode in ("nearest", "linear", "cubic"):
            scales = np.array([1, 1, factor, factor], np.float32)
            yield (f"resize_{mode}_{text(shape)}_{factor}",
                   operator("Resize", shape, [*shape[:2], shape[2] * factor, shape[3] * factor], [scales], skip=1,
                            mode=mode))
    for shape, other in (([1, 64, 56, 56], [1, 64, 56, 56]), ([1, 64, 56, 56], [1, 64, 1, 1]),
                         ([1, 256, 14, 14], [1, 256, 14, 14]), ([8, 128, 768], [768]), ([1, 128, 768], [1, 128, 1]),
                         ([1024, 1024], [1, 1024]), ([1024, 1024], [1024, 1]), ([1, 3, 224, 224], [1, 3, 1, 1]),
                         ([1000], [1000]), ([1, 1, 512, 512], [1])):
        yield f"elementwise_{text(shape)}_{text(other)}", elementwise(shape, other)
    for name in ("Sigmoid", "Tanh", "Erf", "Exp", "HardSwish", "Elu", "Softplus"):
        for shape in ([1, 64, 56, 56], [1, 128, 768]):
            yield f"{name.lower()}_{text(shape)}", operator(name, shape)
    for shape, order in (([1, 64, 56, 56], [0, 2, 3, 1]), ([1, 56, 56, 64], [0, 3, 1, 2]), ([12, 128, 64], [0, 2, 1]),
                         ([1, 128, 12, 64], [0, 2, 1, 3]), ([1024, 1024], [1, 0]), ([1, 116, 28, 28], [0, 1, 3, 2])):
        yield f"transpose_{text(shape)}_{text(order)}", operator("Transpose", shape, [shape[i] for i in order],
                                                                 perm=order)


SHAPES: dict[str, Builder] = dict([*convolutions(), *products(), *others()])
