"""Trains the three digit classifiers of this folder and writes their models, data and accuracies.

    python3 -m venv build/models && build/models/bin/pip install -r models/requirements.txt
    build/models/bin/python models/train_digits.py

Takes about half a minute.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Callable

# One thread, so that sums have one order and the weights are reproducible.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import onnxruntime

from digits_data import SEED, digits, write_accuracy, write_data
from network import Network
from training import train


def fully_connected(seed: int) -> Network:
    """64 - 64 - 32 - 10 with ReLUs."""
    network = Network("digits_fully_connected", opset=17, seed=seed)
    x = network.input("image", ["N", 1, 8, 8])
    x = network.node("Flatten", "flatten", [x], axis=1)
    x = network.relu("relu1", network.fully_connected("dense1", x, 64, 64))
    x = network.relu("relu2", network.fully_connected("dense2", x, 64, 32))
    network.fully_connected("classifier", x, 32, 10, gain=1.0, output="logits")
    network.output("logits", ["N", 10])
    return network


def separable_block(network: Network, name: str, x: str, channels: int, stride: int) -> str:
    """Depthwise 3x3, pointwise 1x1, plus the input, through a 1x1 convolution if the shape changes."""
    y = network.convolution(f"{name}/depthwise", x, network.channels[x], 3, stride, groups=network.channels[x])
    y = network.relu(f"{name}/relu1", network.batch_normalization(f"{name}/normalize1", y))
    y = network.convolution(f"{name}/pointwise", y, channels, 1, gain=1.0)
    y = network.batch_normalization(f"{name}/normalize2", y)
    if stride != 1 or channels != network.channels[x]:
        x = network.convolution(f"{name}/shortcut", x, channels, 1, stride, gain=1.0)
        x = network.batch_normalization(f"{name}/normalize_shortcut", x)
    return network.relu(f"{name}/relu2", network.node("Add", f"{name}/add", [y, x]))


def residual(seed: int) -> Network:
    """A 3x3 convolution, three depthwise-separable residual blocks and one of two 3x3 convolutions."""
    network = Network("digits_residual", opset=17, seed=seed)
    x = network.input("image", ["N", 1, 8, 8], channels=1)
    x = network.relu("relu1", network.batch_normalization("normalize1", network.convolution("conv1", x, 16, 3)))
    x = separable_block(network, "block1", x, 16, 1)
    x = separable_block(network, "block2", x, 32, 2)
    y = network.convolution("block3/conv1", x, 32, 3)
    y = network.relu("block3/relu1", network.batch_normalization("block3/normalize1", y))
    y = network.batch_normalization("block3/normalize2", network.convolution("block3/conv2", y, 32, 3, gain=1.0))
    x = network.relu("block3/relu2", network.node("Add", "block3/add", [y, x]))
    x = separable_block(network, "block4", x, 32, 1)
    x = network.node("Flatten", "flatten", [network.node("GlobalAveragePool", "pool", [x])], axis=1)
    network.fully_connected("classifier", x, 32, 10, gain=1.0, output="logits")
    network.output("logits", ["N", 10])
    return network


def attention(seed: int) -> Network:
    """A transformer encoder of two blocks, with the eight rows of the image as tokens."""
    width, heads = 32, 4
    network = Network("digits_attention", opset=20, seed=seed)
    x = network.input("image", ["N", 1, 8, 8])
    x = network.node("Squeeze", "rows", [x, network.constant("rows/axes", [1])])
    x = network.projection("embedding", x, 8, width)
    position = network.parameter("position/weight", network.normal((8, width), 0.5))
    x = network.node("Add", "position", [x, position])
    for block in (1, 2):
        x = network.encoder_block(f"block{block}", x, width, heads, 2 * width)
    x = network.layer_normalization("normalize", x, width)
    x = network.node("ReduceMean", "mean", [x, network.constant("mean/axes", [1])], keepdims=0)
    network.fully_connected("classifier", x, width, 10, gain=1.0, output="logits")
    network.output("logits", ["N", 10])
    return network


# name: builder, epochs, rate, with shifted images (which help convolutions only)
MODELS: dict[str, tuple[Callable[[int], Network], int, float, bool]] = {
    "digits_fully_connected": (fully_connected, 100, 3e-3, False),
    "digits_residual": (residual, 100, 5e-3, True),
    "digits_attention": (attention, 100, 3e-3, False),
}


def correct(path: Path, images: np.ndarray, labels: np.ndarray) -> int:
    """The number of images that onnxruntime classifies correctly."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"image": images})
    return int((logits.argmax(1) == labels).sum())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--output", type=Path, default=Path(__file__).parent, help="output folder")
    arguments.add_argument("--only", choices=MODELS, help="train this model alone and do not change accuracy.json")
    options = arguments.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    data = digits()
    accuracies: dict[str, dict[str, int]] = {}
    for name, (make, epochs, rate, shift) in MODELS.items():
        if options.only not in (None, name):
            continue
        network = make(SEED)
        loss = train(network, *data["training"], epochs=epochs, rate=rate, seed=SEED, shift=shift)
        path = options.output / f"{name}.onnx"
        network.write(path)
        accuracies[name] = write_data(options.output, name, data, lambda images, labels: correct(path, images, labels))
        weights = sum(value.size for value in network.parameters.values())
        size = path.stat().st_size
        print(f"{name}: loss {loss:.4f}, {weights} weights, {size} bytes, {accuracies[name]}", flush=True)
    if options.only is None:
        write_accuracy(options.output, accuracies)


if __name__ == "__main__":
    main()
