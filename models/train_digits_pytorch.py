"""Trains a classifier of digits in PyTorch and exports it, as users do: the network of the tutorial.

    apt-get install python3-torch python3-sklearn    # or their wheels
    python3 models/train_digits_pytorch.py

Takes about a minute.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from digits_data import SEED, digits, write_accuracy, write_data

NAME = "digits_pytorch"


class Block(nn.Module):
    """Two 3x3 convolutions plus the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


class Digits(nn.Module):
    """[N][1][8][8] from 0 to 1, in, logits of ten digits out."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.SiLU())
        self.block1 = Block(16)
        self.down = nn.Conv2d(16, 24, 2, stride=2)
        self.block2 = Block(24)
        self.drop = nn.Dropout(0.2)
        self.classifier = nn.Linear(24, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.block2(self.down(self.block1(self.stem(image))))
        return self.classifier(self.drop(x.mean(dim=(2, 3))))


def shifted(images: torch.Tensor) -> torch.Tensor:
    """Shifts each image by up to one pixel in each direction."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    places = torch.randint(0, 3, (len(images), 2))
    return torch.stack([picture[:, y : y + 8, x : x + 8] for picture, (y, x) in zip(padded, places.tolist())])


def train(model: Digits, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    model.train()
    steps = epochs * (len(images) // 50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(shifted(images[chosen])), labels[chosen]).backward()
            optimizer.step()
            schedule.step()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--output", type=Path, default=Path(__file__).parent, help="output folder")
    options = arguments.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in one order
    data = digits()
    model = Digits()
    images, labels = data["training"]
    train(model, torch.from_numpy(images), torch.from_numpy(labels), epochs=60)
    model.eval()
    torch.onnx.export(model, (torch.zeros(1, 1, 8, 8),), str(options.output / f"{NAME}.onnx"), opset_version=17,
                      input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}})

    def correct(images: np.ndarray, labels: np.ndarray) -> int:
        with torch.no_grad():
            return int((model(torch.from_numpy(images)).argmax(1).numpy() == labels).sum())

    accuracies = {NAME: write_data(options.output, NAME, data, correct)}
    write_accuracy(options.output, accuracies)
    print(accuracies)


if __name__ == "__main__":
    main()
