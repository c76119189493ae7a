"""Makes the digit classifiers of this folder: describes the untrained networks, has hoist train them, and counts.

    python3 -m venv build/models && build/models/bin/pip install -r models/requirements.txt
    build/models/bin/python models/make_digits.py

The untrained networks state their seeded weights; hoist does the rest. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Callable

from network import Network

SEED = 20261121
FOLDER = Path(__file__).resolve().parent


def fully_connected(network: Network) -> str:
    """64 - 64 - 32 - 10 with ReLUs."""
    x = network.input("image", ["N", 1, 8, 8])
    x = network.node("Flatten", "flatten", [x], axis=1)
    x = network.relu("relu1", network.fully_connected("dense1", x, 64, 64))
    x = network.relu("relu2", network.fully_connected("dense2", x, 64, 32))
    return network.fully_connected("classifier", x, 32, 10, gain=1.0, output="logits")


def normalized(network: Network, name: str, normalize: str, x: str, channels: int, kernel: int, stride: int = 1,
               groups: int = 1, gain: float = 2.0) -> str:
    """A convolution and its batch normalization."""
    x = network.convolution(name, x, channels, kernel, stride, groups=groups, gain=gain)
    return network.batch_normalization(normalize, x)


def separable_block(network: Network, name: str, x: str, channels: int, stride: int) -> str:
    """Depthwise 3x3, pointwise 1x1, plus the input, through a 1x1 convolution if the shape changes."""
    inputs = network.channels[x]
    y = normalized(network, f"{name}/depthwise", f"{name}/normalize1", x, inputs, 3, stride, groups=inputs)
    y = network.relu(f"{name}/relu1", y)
    y = normalized(network, f"{name}/pointwise", f"{name}/normalize2", y, channels, 1, gain=1.0)
    if stride != 1 or channels != inputs:
        x = normalized(network, f"{name}/shortcut", f"{name}/normalize_shortcut", x, channels, 1, stride, gain=1.0)
    return network.relu(f"{name}/relu2", network.node("Add", f"{name}/add", [y, x]))


def block(network: Network, name: str, x: str, gains: tuple[float, float] = (2.0, 1.0)) -> str:
    """Two 3x3 convolutions, plus the input."""
    channels, (first, second) = network.channels[x], gains
    y = normalized(network, f"{name}/conv1", f"{name}/normalize1", x, channels, 3, gain=first)
    y = network.relu(f"{name}/relu1", y)
    y = normalized(network, f"{name}/conv2", f"{name}/normalize2", y, channels, 3, gain=second)
    return network.relu(f"{name}/relu2", network.node("Add", f"{name}/add", [y, x]))


def residual(network: Network) -> str:
    """A 3x3 convolution, three depthwise-separable residual blocks and one of two 3x3 convolutions."""
    x = network.input("image", ["N", 1, 8, 8], channels=1)
    x = network.relu("relu1", normalized(network, "conv1", "normalize1", x, 16, 3))
    x = separable_block(network, "block1", x, 16, 1)
    x = separable_block(network, "block2", x, 32, 2)
    x = block(network, "block3", x)
    x = separable_block(network, "block4", x, 32, 1)
    x = network.node("Flatten", "flatten", [network.node("GlobalAveragePool", "pool", [x])], axis=1)
    return network.fully_connected("classifier", x, 32, 10, gain=1.0, output="logits")


def attention(network: Network) -> str:
    """A transformer encoder of two blocks, with the eight rows of the image as tokens."""
    width, heads = 32, 4
    x = network.input("image", ["N", 1, 8, 8])
    x = network.node("Squeeze", "rows", [x, network.constant("rows/axes", [1])])
    x = network.projection("embedding", x, 8, width)
    position = network.parameter("position/weight", network.normal((8, width), 0.5))
    x = network.node("Add", "position", [x, position])
    for number in (1, 2):
        x = network.encoder_block(f"block{number}", x, width, heads, 2 * width)
    x = network.layer_normalization("normalize", x, width)
    x = network.node("ReduceMean", "mean", [x, network.constant("mean/axes", [1])], keepdims=0)
    return network.fully_connected("classifier", x, width, 10, gain=1.0, output="logits")


def convolutional(network: Network) -> str:
    """Two residual blocks with SiLU before and a convolution of stride 2 between them, and dropout of the mean.

    Weights are as small as PyTorch's: before a normalization, that makes learning rates larger.
    """
    gain = 1 / 3
    x = network.input("image", ["N", 1, 8, 8], channels=1)
    x = network.convolution("stem", x, 16, 3, bias=True, gain=gain)
    x = network.batch_normalization("stem/normalize", x)
    x = network.node("Mul", "stem/silu", [x, network.node("Sigmoid", "stem/sigmoid", [x])])
    network.channels[x] = 16
    x = block(network, "block1", x, (gain, gain))
    x = network.convolution("down", x, 24, 2, stride=2, padding=0, bias=True, gain=gain)
    x = block(network, "block2", x, (gain, gain))
    x = network.node("Flatten", "flatten", [network.node("GlobalAveragePool", "pool", [x])], axis=1)
    x = network.node("Dropout", "drop", [x, network.constant("drop/ratio", 0.2)])
    return network.fully_connected("classifier", x, 24, 10, gain=gain, output="logits")


# Shifts by up to one pixel help convolutions only.
SHIFTED = "--augment crop=1"
USUAL = "--optimiser adamw:beta2=0.99 --schedule cosine --label-smoothing 0.1 --epochs 100 --batch 100"
# name: its description, opset, options of hoist train
MODELS: dict[str, tuple[Callable[[Network], str], int, str]] = {
    "digits_fully_connected": (fully_connected, 17, f"{USUAL} --learning-rate 0.003"),
    "digits_residual": (residual, 17, f"{USUAL} --learning-rate 0.005 {SHIFTED}"),
    "digits_attention": (attention, 20, f"{USUAL} --learning-rate 0.003"),
    "digits_convolutional": (convolutional, 17, "--optimiser adamw --schedule cosine:0,18 --epochs 60 --batch 50 "
                                                f"--learning-rate 0.005 {SHIFTED}"),
}


def untrained(name: str, path: Path) -> None:
    """Writes a network with seeded random weights."""
    describe, opset = MODELS[name][:2]
    network = Network(name, opset, SEED)
    network.output(describe(network), ["N", 10])
    network.write(path)


def train(hoist: str, name: str, model: Path, output: Path, more: list[str]) -> None:
    subprocess.run([hoist, "train", model, "--data", FOLDER / "digits_training.npz", *MODELS[name][2].split(), "--force",
                    "--output", output, *more], check=True)


def counts(hoist: str, model: Path, name: str, folder: Path) -> dict[str, int]:
    """The numbers of right answers and of images, by set."""
    bundle, answer = folder / "bundle", folder / "answer.json"
    subprocess.run([hoist, "compile", model, "--target", "native", "--force", "--output", bundle], check=True)
    out: dict[str, int] = {}
    for part in ("calibration", "test"):
        data = FOLDER / f"{name}_{part}.npz"
        subprocess.run([hoist, "evaluate", bundle, "--data", data, "--json", answer], check=True)
        found = json.loads(answer.read_text())
        out |= {f"{part}_correct": found["correct"], f"{part}_total": found["total"]}
    return out


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--output", type=Path, default=FOLDER, help="output folder")
    arguments.add_argument("--hoist", default=FOLDER.parent / "build/release/hoist", help="the compiler")
    arguments.add_argument("--only", choices=MODELS, help="make this model alone and do not change accuracy.json")
    options, more = arguments.parse_known_args()  # hoist train gets the others
    options.output.mkdir(parents=True, exist_ok=True)
    accuracies: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as made:
        for name in MODELS if options.only is None else [options.only]:
            beginning, trained = Path(made) / f"{name}.onnx", options.output / f"{name}.onnx"
            untrained(name, beginning)
            train(options.hoist, name, beginning, trained, more)
            accuracies[name] = counts(options.hoist, trained, name, Path(made))
            print(f"{name}: {accuracies[name]}", flush=True)
    if options.only is None:
        (options.output / "accuracy.json").write_text(json.dumps(accuracies, indent=2) + "\n")


if __name__ == "__main__":
    main()
