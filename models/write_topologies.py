"""Writes well-known network topologies with seeded random weights, for timing and for comparing engines.

    python write_topologies.py FOLDER [--only resnet18 ...]

The graphs are like torchvision's exports for inference, opset 17: BatchNormalization as nodes of its
own in the ResNets and MobileNetV2, a symbolic batch dimension N, class scores (logits) without a final softmax. The
numbers mean nothing; weights are scaled so that activations neither vanish nor overflow.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Callable

import numpy as np

from network import Network

SEED = 20261121


def image_network(name: str) -> tuple[Network, str]:
    network = Network(name, opset=17, seed=SEED)
    return network, network.input("image", ["N", 3, 224, 224], channels=3)


def normalized(network: Network, name: str, x: str, channels: int, kernel: int, stride: int = 1, groups: int = 1,
               gain: float = 2.0, scale: float = 1.0) -> str:
    """Convolution and batch normalization: nodes name and name/normalize."""
    x = network.convolution(name, x, channels, kernel, stride, groups=groups, gain=gain)
    return network.batch_normalization(f"{name}/normalize", x, scale)


def pooled_classifier(network: Network, x: str) -> Network:
    channels = network.channels[x]
    x = network.node("Flatten", "flatten", [network.node("GlobalAveragePool", "pool", [x])], axis=1)
    network.fully_connected("classifier", x, channels, 1000, gain=1.0, output="logits")
    network.output("logits", ["N", 1000])
    return network


def resnet(name: str, blocks: tuple[int, ...], bottleneck: bool) -> Network:
    """He et al. 2015, with the stride of a bottleneck in its 3x3 convolution as in torchvision."""
    network, x = image_network(name)
    x = network.relu("relu1", normalized(network, "conv1", x, 64, 7, 2))
    x = network.node("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, count in enumerate(blocks, 1):
        width = 32 << stage
        for block in range(1, count + 1):
            at = f"stage{stage}/block{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            channels = 4 * width if bottleneck else width
            # The last layer of a branch is scaled down: sums of unscaled branches would grow with the depth.
            if bottleneck:
                y = network.relu(f"{at}/relu1", normalized(network, f"{at}/conv1", x, width, 1))
                y = network.relu(f"{at}/relu2", normalized(network, f"{at}/conv2", y, width, 3, stride))
                y = normalized(network, f"{at}/conv3", y, channels, 1, gain=1.0, scale=0.5)
            else:
                y = network.relu(f"{at}/relu1", normalized(network, f"{at}/conv1", x, width, 3, stride))
                y = normalized(network, f"{at}/conv2", y, channels, 3, gain=1.0, scale=0.5)
            if stride != 1 or network.channels[x] != channels:
                x = normalized(network, f"{at}/shortcut", x, channels, 1, stride, gain=1.0)
            x = network.relu(f"{at}/relu_out", network.node("Add", f"{at}/add", [y, x]))
    return pooled_classifier(network, x)


def mobilenet_v2(name: str) -> Network:
    """Sandler et al. 2018, width 1.0: inverted residuals with ReLU6 and linear bottlenecks."""
    network, x = image_network(name)
    low, high = network.constant("relu6/low", np.float32(0)), network.constant("relu6/high", np.float32(6))

    def relu6(node: str, y: str) -> str:
        return network.node("Clip", node, [y, low, high])

    x = relu6("relu6_1", normalized(network, "conv1", x, 32, 3, 2))
    number = 0
    for expansion, channels, count, first_stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):
        for repeat in range(count):
            number += 1
            at = f"block{number}"
            stride = first_stride if repeat == 0 else 1
            hidden = expansion * network.channels[x]
            y = x
            if expansion != 1:
                y = relu6(f"{at}/relu6_1", normalized(network, f"{at}/expand", y, hidden, 1, gain=1.0))
            y = relu6(f"{at}/relu6_2", normalized(network, f"{at}/depthwise", y, hidden, 3, stride, groups=hidden))
            y = normalized(network, f"{at}/project", y, channels, 1)
            x = network.node("Add", f"{at}/add", [x, y]) if stride == 1 and network.channels[x] == channels else y
    x = relu6("relu6_last", normalized(network, "conv_last", x, 1280, 1, gain=1.0))
    return pooled_classifier(network, x)


def vgg16(name: str) -> Network:
    """Simonyan and Zisserman 2014, configuration D, without batch normalization."""
    network, x = image_network(name)
    for stage, (channels, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for number in range(1, count + 1):
            at = f"conv{stage}_{number}"
            x = network.relu(at.replace("conv", "relu"), network.convolution(at, x, channels, 3, bias=True))
        x = network.node("MaxPool", f"maxpool{stage}", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = network.node("Flatten", "flatten", [x], axis=1)
    x = network.relu("relu6", network.fully_connected("dense6", x, 512 * 7 * 7, 4096))
    x = network.relu("relu7", network.fully_connected("dense7", x, 4096, 4096))
    network.fully_connected("classifier", x, 4096, 1000, gain=1.0, output="logits")
    network.output("logits", ["N", 1000])
    return network


def squeezenet1_1(name: str) -> Network:
    """Iandola et al. 2016, version 1.1: the scores come from a convolution."""
    network, x = image_network(name)

    def fire(at: str, x: str, squeeze: int, expand: int) -> str:
        s = network.relu(f"{at}/squeeze/relu", network.convolution(f"{at}/squeeze", x, squeeze, 1, bias=True))
        a = network.relu(f"{at}/expand1x1/relu", network.convolution(f"{at}/expand1x1", s, expand, 1, bias=True))
        b = network.relu(f"{at}/expand3x3/relu", network.convolution(f"{at}/expand3x3", s, expand, 3, bias=True))
        network.channels[f"{at}/concat"] = 2 * expand
        return network.node("Concat", f"{at}/concat", [a, b], axis=1)

    def pool(at: str, x: str) -> str:
        return network.node("MaxPool", at, [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    x = pool("maxpool1", network.relu("relu1", network.convolution("conv1", x, 64, 3, 2, padding=0, bias=True)))
    x = pool("maxpool3", fire("fire3", fire("fire2", x, 16, 64), 16, 64))
    x = pool("maxpool5", fire("fire5", fire("fire4", x, 32, 128), 32, 128))
    x = fire("fire9", fire("fire8", fire("fire7", fire("fire6", x, 48, 192), 48, 192), 64, 256), 64, 256)
    x = network.relu("relu10", network.convolution("conv10", x, 1000, 1, bias=True))
    network.node("Flatten", "flatten", [network.node("GlobalAveragePool", "pool", [x])], output="logits", axis=1)
    network.output("logits", ["N", 1000])
    return network


def transformer_encoder(name: str, tokens: int = 128, width: int = 256, heads: int = 4, blocks: int = 4) -> Network:
    """Vaswani et al. 2017 with the normalization first and GELU; embedded tokens in, one vector per token out."""
    network = Network(name, opset=17, seed=SEED)
    x = network.input("tokens", ["N", tokens, width])
    for block in range(1, blocks + 1):
        x = network.encoder_block(f"block{block}", x, width, heads, 4 * width)
    network.layer_normalization("normalize", x, width, output="features")
    network.output("features", ["N", tokens, width])
    return network


TOPOLOGIES: dict[str, Callable[[str], Network]] = {
    "resnet18": lambda name: resnet(name, (2, 2, 2, 2), bottleneck=False),
    "resnet50": lambda name: resnet(name, (3, 4, 6, 3), bottleneck=True),
    "mobilenet_v2": mobilenet_v2,
    "vgg16": vgg16,
    "squeezenet1_1": squeezenet1_1,
    "transformer_encoder": transformer_encoder,
}


def write(folder: Path, names: list[str]) -> list[Path]:
    """Writes the named topologies as FOLDER/NAME.onnx and returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        path = folder / f"{name}.onnx"
        network = TOPOLOGIES[name](name)
        network.write(path)
        weights = sum(value.size for value in network.parameters.values())
        print(f"{path}: {len(network.nodes)} nodes, {weights} weights, {path.stat().st_size} bytes", flush=True)
        paths.append(path)
    return paths


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="folder for the .onnx files")
    arguments.add_argument("--only", nargs="+", choices=TOPOLOGIES, default=list(TOPOLOGIES), metavar="NAME",
                           help="some of: " + ", ".join(TOPOLOGIES))
    options = arguments.parse_args()
    write(options.folder, options.only)


if __name__ == "__main__":
    main()
