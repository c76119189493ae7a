"""Writes networks of independent random layers, for kernel_times to measure. Development only.

    python tools/tuning/random_layers.py FOLDER [--networks 6] [--layers 24] [--seed 1]

Published networks have few shapes, most of them powers of two, and a model of their kernels alone would overfit; these
networks have convolutions, contractions, pools, normalisations and sums of all sizes. Needs numpy and onnx
(tools/compare/setup installs them into an environment of its own).
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
from network import Network  # noqa: E402


def extent(choice: random.Random, least: int, most: int) -> int:
    """All orders of magnitude equally likely; every second one a multiple of 8."""
    value = round(least * (most / least) ** choice.random())
    return max(8, value // 8 * 8) if most >= 8 and choice.random() < 0.5 else value


def convolution(network: Network, name: str, choice: random.Random) -> tuple[str, list[int]]:
    kernel = choice.choice([1, 1, 3, 3, 3, 5, 7])
    side = extent(choice, max(kernel, 4), 72)
    channels = extent(choice, 3, 256)
    apart = kernel > 1 and choice.random() < 0.3
    filters = channels if apart else extent(choice, 8, 256)
    stride = choice.choice([1, 1, 1, 2])
    while side * side // stride ** 2 * channels * (1 if apart else filters) * kernel * kernel > 60e6:
        side = max(kernel, side // 2)
        channels = channels if apart else max(4, channels // 2)
    x = network.input(f"{name}/input", [1, channels, side, side], channels=channels)
    y = network.convolution(name, x, filters, kernel, stride, groups=channels if apart else 1, bias=True)
    if choice.random() < 0.6:
        y = network.relu(f"{name}/relu", y)
    out = (side - 1) // stride + 1 if kernel % 2 else side
    return y, [1, filters, out, out]


def product(network: Network, name: str, choice: random.Random) -> tuple[str, list[int]]:
    rows, inner, columns = extent(choice, 1, 256), extent(choice, 8, 768), extent(choice, 8, 768)
    y = network.projection(name, network.input(f"{name}/input", [1, rows, inner]), inner, columns)
    if choice.random() < 0.3:
        y = network.gelu(f"{name}/gelu", y)
    return y, [1, rows, columns]


def pool(network: Network, name: str, choice: random.Random) -> tuple[str, list[int]]:
    channels, side, kernel = extent(choice, 3, 256), extent(choice, 6, 80), choice.choice([2, 3])
    x = network.input(f"{name}/input", [1, channels, side, side], channels=channels)
    if choice.random() < 0.3:
        return network.node("GlobalAveragePool", name, [x]), [1, channels, 1, 1]
    operator = choice.choice(["MaxPool", "AveragePool"])
    y = network.node(operator, name, [x], kernel_shape=[kernel, kernel], strides=[2, 2])
    return y, [1, channels, (side - kernel) // 2 + 1, (side - kernel) // 2 + 1]


def row_function(network: Network, name: str, choice: random.Random) -> tuple[str, list[int]]:
    rows, width = extent(choice, 1, 512), extent(choice, 8, 1024)
    x = network.input(f"{name}/input", [1, rows, width])
    if choice.random() < 0.5:
        return network.node("Softmax", name, [x], axis=-1), [1, rows, width]
    return network.layer_normalization(name, x, width), [1, rows, width]


def elementwise(network: Network, name: str, choice: random.Random) -> tuple[str, list[int]]:
    shape = [1, extent(choice, 3, 256), extent(choice, 4, 64), extent(choice, 4, 64)]
    x = network.input(f"{name}/input", shape)
    kind = choice.choice(["Add", "Relu", "Sigmoid", "Tanh", "Transpose", "Concat"])
    if kind == "Add":
        return network.node("Add", name, [x, network.input(f"{name}/other", shape)]), shape
    if kind == "Transpose":
        return network.node("Transpose", name, [x], perm=[0, 2, 3, 1]), [1, shape[2], shape[3], shape[1]]
    if kind == "Concat":
        y = network.node("Concat", name, [x, network.input(f"{name}/other", shape)], axis=1)
        return y, [1, 2 * shape[1], shape[2], shape[3]]
    return network.node(kind, name, [x]), shape


LAYERS = [convolution] * 5 + [product] * 2 + [pool, row_function, elementwise]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", type=int, default=6)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.seed, arguments.seed + arguments.networks):
        choice = random.Random(seed)
        network = Network(f"layers_{seed}", opset=17, seed=seed)
        for layer in range(arguments.layers):
            network.output(*choice.choice(LAYERS)(network, f"layer{layer}", choice))
        network.write(arguments.folder / f"layers_{seed}.onnx")


if __name__ == "__main__":
    main()
