"""Trains the cost model that reads a kernel as a text, and writes it as ONNX, for hoist to compile and run. Development only.

    python3 tools/tuning/train_lstm.py TOKENS [--parts 4] [--epochs 40] [--output MODEL.onnx]

TOKENS is what the program kernel_tokens writes. The model is Ithemal's (arXiv 1808.07412) for loop nests: an LSTM reads
the tokens of each statement, a second one the statements, and a layer makes of its last state the logarithm of the time
for a unit of work. With --parts the networks are dealt into so many parts, of which one after the other is left out, and
what is printed is said of kernels whose network the model has not seen; without it the model learns from everything.
Needs PyTorch: Debian's python3-torch.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

STATEMENTS = 96  # of a kernel at most; shorter ones end with empty statements
WIDTH = 48


@dataclass
class Kernel:
    network: str
    seconds: float
    work: float
    statements: list[list[int]]


class KernelReader(torch.nn.Module):
    def __init__(self, tokens: int, mean: float, deviation: float):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, WIDTH)
        self.statement = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.kernel = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.last = torch.nn.Linear(WIDTH, 1)
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))

    def forward(self, kernels: torch.Tensor) -> torch.Tensor:
        """[kernels][statements][tokens] to logarithms of seconds for a unit of work."""
        count, statements, tokens = kernels.shape
        read = self.statement(self.embedding(kernels.reshape(count * statements, tokens)))[0][:, -1]
        return self.read_statements(read.reshape(count, statements, WIDTH), kernels)

    def forward_shared(self, kernels: torch.Tensor) -> torch.Tensor:
        """The same with less work: kernels have many statements in common, and end with empty ones."""
        kernels = kernels[:, : int((kernels[:, :, 0] != 0).sum(dim=1).max())]
        statements, which = kernels.flatten(0, 1).unique(dim=0, return_inverse=True)
        read = self.statement(self.embedding(statements))[0][:, -1][which]
        return self.read_statements(read.reshape(kernels.shape[0], kernels.shape[1], WIDTH), kernels)

    def read_statements(self, read: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
        there = (kernels[:, :, 0] != 0).float()
        is_last = there - torch.cat([there[:, 1:], torch.zeros_like(there[:, :1])], dim=1)
        state = (self.kernel(read)[0] * is_last[:, :, None]).sum(dim=1)
        return self.last(state)[:, 0] * self.deviation + self.mean


def read_kernels(path: Path) -> tuple[int, list[Kernel]]:
    lines = path.read_text().splitlines()
    kernels = []
    for line in lines[1:]:
        record = json.loads(line)
        if len(record["statements"]) <= STATEMENTS:
            kernels.append(Kernel(record["model"], record["seconds"], record["work"], record["statements"]))
    if len(kernels) < len(lines) - 1:
        print(f"{len(lines) - 1 - len(kernels)} kernels have more than {STATEMENTS} statements and are left out")
    return json.loads(lines[0])["tokens"], kernels


def numbers_of(kernels: list[Kernel]) -> tuple[torch.Tensor, torch.Tensor]:
    empty = [0] * len(kernels[0].statements[0])
    statements = [k.statements + [empty] * (STATEMENTS - len(k.statements)) for k in kernels]
    return torch.tensor(statements), torch.tensor([math.log(k.seconds / k.work) for k in kernels])


def train(tokens: int, kernels: list[Kernel], epochs: int) -> KernelReader:
    torch.manual_seed(1)
    inputs, labels = numbers_of(kernels)
    model = KernelReader(tokens, labels.mean().item(), labels.std().item())
    batch = 32
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    batches = -(-len(kernels) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * batches)
    for epoch in range(epochs):
        order = torch.randperm(len(kernels))
        total = 0.0
        for chosen in order.split(batch):
            loss = (model.forward_shared(inputs[chosen]) - labels[chosen]).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {total / len(kernels):.3f}", file=sys.stderr, flush=True)
    return model.eval()


def ranks_of(values: torch.Tensor) -> torch.Tensor:
    return values.argsort().argsort().double()


def quality_of(measured: torch.Tensor, predicted: torch.Tensor) -> str:
    errors = (predicted / measured - 1).abs()
    correlation = torch.corrcoef(torch.stack([ranks_of(measured), ranks_of(predicted)]))[0, 1].item()
    return (f"{len(errors)} kernels: mean error {100 * errors.mean().item():.1f} %, median "
            f"{100 * errors.median().item():.1f} %, Spearman {correlation:.3f}")


def predict(model: KernelReader, kernels: list[Kernel]) -> torch.Tensor:
    with torch.no_grad():
        return model.forward_shared(numbers_of(kernels)[0]).exp() * torch.tensor([k.work for k in kernels])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--parts", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    tokens, kernels = read_kernels(arguments.tokens)
    networks = sorted({k.network for k in kernels})
    measured, predicted = [], []
    for part in range(arguments.parts):
        left_out = set(networks[part::arguments.parts])
        model = train(tokens, [k for k in kernels if k.network not in left_out], arguments.epochs)
        others = [k for k in kernels if k.network in left_out]
        predicted.append(predict(model, others))
        measured.append(torch.tensor([k.seconds for k in others]))
        print(f"without {', '.join(sorted(left_out))}: {quality_of(measured[-1], predicted[-1])}", flush=True)
    if measured:
        print(f"all parts: {quality_of(torch.cat(measured), torch.cat(predicted))}")
    if arguments.output:
        model = train(tokens, kernels, arguments.epochs)
        example = numbers_of(kernels[:1])[0]
        torch.onnx.export(model, (example,), str(arguments.output), input_names=["statements"], output_names=["logarithm"],
                          opset_version=16)
        print(f"{arguments.output}: {quality_of(torch.tensor([k.seconds for k in kernels]), predict(model, kernels))} "
              "(of those that it learned from)")


if __name__ == "__main__":
    main()
