"""Trains a cost model on the texts of kernels, and writes it as ONNX, which hoist can compile. Development only.

    python3 tools/tuning/train_lstm.py TOKENS [--parts 9] [--epochs 40] [--beside PREDICTIONS] [--output MODEL.onnx]

TOKENS is the output of the program kernel_tokens. The model is Ithemal's (arXiv 1808.07412) for loop nests: one LSTM reads
the tokens of each statement, a second one the statements. Two layers map its last state, the mean and maximum of its
states, and the features of the trees to the logarithm of the kernel's time relative to its amounts at learned prices, as for
the trees (cost_model.h). With --parts the networks are divided into parts, each part is left out in turn (for the prices,
too), and the printed errors describe the left-out networks. --beside names the predictions of cost_model_quality for the
same records and adds the errors of the geometric mean of both. --output is the model trained on all records; it does not
contain the prices. Needs PyTorch and SciPy: Debian's python3-torch and python3-scipy.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import nnls

STATEMENTS = 96  # maximum per kernel; shorter ones end with empty statements
WIDTH = 64
DROPOUT = 0.1
LEAST_SECONDS = 1e-9  # lower bound of a kernel's time
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Kernels:
    """One row per kernel."""
    tokens: int  # larger than every token
    networks: np.ndarray  # their names
    native: np.ndarray
    seconds: np.ndarray
    amounts: np.ndarray  # [kernels][amounts]
    features: np.ndarray  # [kernels][features]
    statements: np.ndarray  # [kernels][STATEMENTS][tokens of a statement]; 0 for none


class Prices:
    """Seconds for one of each amount, non-negative, separately for native code and drivers."""

    def __init__(self, kernels: Kernels, known: np.ndarray):
        self.of = {}
        for native in (True, False):
            rows = known & (kernels.native == native)
            shares = kernels.amounts[rows] / kernels.seconds[rows, None]
            scale = shares.max(axis=0, initial=0) + 1e-30
            self.of[native] = nnls(shares / scale, np.ones(len(shares)))[0] / scale if len(shares) else np.zeros(scale.shape)

    def seconds(self, kernels: Kernels) -> np.ndarray:
        sums = np.where(kernels.native, kernels.amounts @ self.of[True], kernels.amounts @ self.of[False])
        return np.maximum(sums, LEAST_SECONDS)


class KernelReader(torch.nn.Module):
    def __init__(self, tokens: int, features: torch.Tensor, labels: torch.Tensor):
        """From features and labels of the training data."""
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, WIDTH)
        self.statement = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.kernel = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.dropout = torch.nn.Dropout(DROPOUT)
        self.last = torch.nn.Sequential(torch.nn.Linear(3 * WIDTH + features.shape[1], WIDTH), torch.nn.ReLU(),
                                        torch.nn.Linear(WIDTH, 1))
        self.register_buffer("feature_mean", features.mean(dim=0))
        self.register_buffer("feature_deviation", features.std(dim=0) + 1e-6)
        self.register_buffer("mean", labels.mean())
        self.register_buffer("deviation", labels.std())

    def forward(self, kernels: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """[kernels][statements][tokens] and [kernels][features] to logarithms of times relative to the priced amounts."""
        count, statements, tokens = kernels.shape
        read = self.statement(self.embedding(kernels.reshape(count * statements, tokens)))[0][:, -1]
        return self.read_statements(read.reshape(count, statements, WIDTH), kernels, features)

    def forward_shared(self, kernels: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """The same as forward() with less work: reads shared statements once, and skips empty statements at the end."""
        kernels = kernels[:, : int((kernels[:, :, 0] != 0).sum(dim=1).max())]
        statements, which = kernels.flatten(0, 1).unique(dim=0, return_inverse=True)
        read = self.statement(self.embedding(statements))[0][:, -1]
        return self.read_statements(self.dropout(read)[which.reshape(kernels.shape[:2])], kernels, features)

    def read_statements(self, read: torch.Tensor, kernels: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        there = (kernels[:, :, 0] != 0).float()[:, :, None]
        is_last = there - torch.cat([there[:, 1:], torch.zeros_like(there[:, :1])], dim=1)
        states = self.kernel(read)[0]
        outside = 4 * (1 - there)  # states lie between -1 and 1
        seen = torch.cat([(states * is_last).sum(dim=1), (states * there).sum(dim=1) / there.sum(dim=1),
                          (states - outside).max(dim=1)[0]], dim=1)
        known = ((features - self.feature_mean) / self.feature_deviation).clamp(-4, 4)
        return self.last(torch.cat([self.dropout(seen), known], dim=1))[:, 0] * self.deviation + self.mean


def read_kernels(path: Path) -> Kernels:
    lines = path.read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    kept = [record for record in records if len(record["statements"]) <= STATEMENTS]
    if len(kept) < len(records):
        print(f"{len(records) - len(kept)} kernels have more than {STATEMENTS} statements and are left out")
    statements = np.zeros((len(kept), STATEMENTS, len(kept[0]["statements"][0])), np.int64)
    for row, record in zip(statements, kept):
        row[: len(record["statements"])] = record["statements"]

    def column(name: str) -> np.ndarray:
        return np.array([record[name] for record in kept])

    return Kernels(json.loads(lines[0])["tokens"], column("model"), column("native"), column("seconds"), column("amounts"),
                   column("features").astype(np.float32), statements)


def train(kernels: Kernels, known: np.ndarray, prices: Prices, epochs: int) -> KernelReader:
    torch.manual_seed(1)
    inputs = torch.tensor(kernels.statements[known], device=DEVICE)
    features = torch.tensor(kernels.features[known], device=DEVICE)
    labels = torch.tensor(np.log(kernels.seconds / prices.seconds(kernels))[known], dtype=torch.float32, device=DEVICE)
    model = KernelReader(kernels.tokens, features, labels).to(DEVICE)
    batch, rate = 128, 4e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    batches = -(-len(labels) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=epochs * batches)
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(labels), device=DEVICE).split(batch):
            difference = model.forward_shared(inputs[chosen], features[chosen]) - labels[chosen]
            # Logarithms first, whose slope is the same everywhere, then the requested error.
            near = difference.clamp(-4, 1)
            errors = difference if epoch < 0.7 * epochs else near.exp() - 1 + difference - near
            loss = errors.abs().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {total / len(labels):.3f}", file=sys.stderr, flush=True)
    return model.eval()


def predict(model: KernelReader, kernels: Kernels, which: np.ndarray, prices: Prices) -> np.ndarray:
    inputs = torch.tensor(kernels.statements[which], device=DEVICE).split(256)
    features = torch.tensor(kernels.features[which], device=DEVICE).split(256)
    with torch.no_grad():
        logarithms = torch.cat([model.forward_shared(*some) for some in zip(inputs, features)]).cpu().numpy()
    return np.exp(logarithms) * prices.seconds(kernels)[which]


def ranks_of(values: np.ndarray) -> np.ndarray:
    return values.argsort().argsort()


def quality_of(measured: np.ndarray, predicted: np.ndarray) -> str:
    errors = np.abs(predicted / measured - 1)
    correlation = np.corrcoef(ranks_of(measured), ranks_of(predicted))[0, 1]
    return (f"{len(errors)} kernels: mean error {100 * errors.mean():.1f} %, median {100 * np.median(errors):.1f} %, "
            f"Spearman {correlation:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--parts", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    kernels = read_kernels(arguments.tokens)
    networks = sorted(set(kernels.networks))
    predicted = np.zeros(len(kernels.seconds))
    for part in range(min(arguments.parts, len(networks))):
        names = networks[part::arguments.parts]
        others = np.isin(kernels.networks, names)
        prices = Prices(kernels, ~others)
        predicted[others] = predict(train(kernels, ~others, prices, arguments.epochs), kernels, others, prices)
        print(f"without {', '.join(names)}: prices alone {quality_of(kernels.seconds[others], prices.seconds(kernels)[others])}; "
              f"with the model {quality_of(kernels.seconds[others], predicted[others])}", flush=True)
    if predicted.any():
        print(f"all parts: {quality_of(kernels.seconds, predicted)}")
        if arguments.beside:
            other = np.array([json.loads(line)["predicted"] or np.nan for line in arguments.beside.read_text().splitlines()])
            of_both = np.sqrt(other * predicted)
            inside = ~np.isnan(of_both)  # records that both models predict
            print(f"with the other predictions: {quality_of(kernels.seconds[inside], of_both[inside])}")
    if arguments.output:
        everything = np.full(len(kernels.seconds), True)
        prices = Prices(kernels, everything)
        model = train(kernels, everything, prices, arguments.epochs)
        print(f"{arguments.output}: {quality_of(kernels.seconds, predict(model, kernels, everything, prices))} "
              "(kernels of the training data)")
        torch.onnx.export(model.cpu(), (torch.tensor(kernels.statements[:1]), torch.tensor(kernels.features[:1])),
                          str(arguments.output), input_names=["statements", "features"], output_names=["logarithm"],
                          opset_version=16)


if __name__ == "__main__":
    main()
