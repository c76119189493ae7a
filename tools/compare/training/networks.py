"""Networks in PyTorch for comparisons of trainings, and their data."""

from __future__ import annotations

import gzip
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def mlp() -> nn.Module:
    """784 - 512 - 512 - 10."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def normalised(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = normalised(inputs, outputs, 3, stride), normalised(outputs, outputs, 3)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet8() -> nn.Module:
    """The ResNet-8 of MLPerf Tiny."""
    return nn.Sequential(normalised(3, 16, 3), nn.ReLU(), Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mobilenet() -> nn.Module:
    """The MobileNet v1 of MLPerf Tiny, a quarter as wide."""
    layers = [normalised(3, 8, 3, 2), nn.ReLU()]
    inputs = 8
    for outputs, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)):
        layers += [normalised(inputs, inputs, 3, stride, inputs), nn.ReLU(), normalised(inputs, outputs, 1), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2))


class Block(nn.Module):
    """An encoder block that normalises before attention and before the perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before_attention(x)
        query, key, value = (layer(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
                             for layer in (self.query, self.key, self.value))
        x = x + self.output(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))
        return x + self.perceptron(self.before_perceptron(x))


class Transformer(nn.Module):
    """An encoder of two blocks over tokens."""

    def __init__(self, tokens: int = 1000, length: int = 64, width: int = 128, heads: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(tokens, width), nn.Parameter(torch.randn(length, width) / 50)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.normalise, self.classifier = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.embedding(x) + self.position)
        return self.classifier(self.normalise(x).mean(1))


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]  # of a sample
    classes: int
    batch: int
    steps: int  # of an epoch
    tokens: int = 0  # 0: samples are floats

    def samples(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Random samples and labels."""
        random = np.random.default_rng(1)
        labels = random.integers(0, self.classes, count)
        if self.tokens:
            return random.integers(0, self.tokens, (count, *self.shape)), labels
        return random.standard_normal((count, *self.shape), np.float32), labels


CASES = {"mlp": Case(mlp, (1, 28, 28), 10, 128, 100), "resnet8": Case(resnet8, (3, 32, 32), 10, 32, 40),
         "mobilenet": Case(mobilenet, (3, 96, 96), 2, 32, 20), "transformer": Case(Transformer, (64,), 10, 16, 40, 1000)}


def export(case: Case, seed: int, path: Path) -> None:
    """Writes the network as ONNX, with the weights of torch.manual_seed(seed) and its normalisations."""
    torch.manual_seed(seed)
    network = case.make().eval()
    sample = torch.from_numpy(case.samples(2)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (sample,), str(path), dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, input_names=["x"], output_names=["logits"],
                          dynamic_axes={"x": {0: "N"}, "logits": {0: "N"}}, opset_version=17)


def pictures(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a gzip file in CIFAR-10's binary format, with mean 0 and deviation 1."""
    with gzip.open(path) as file:
        records = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    images = records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32)
    mean, deviation = (np.float32(n).reshape(3, 1, 1) for n in ([125.3, 123.0, 113.9], [63.0, 62.1, 66.7]))
    return (images - mean) / deviation, records[:, 0].astype(np.int64)
