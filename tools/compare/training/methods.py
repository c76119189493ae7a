"""Compares ways to train with `hoist train`. Development only; needs numpy alone.

    build/compare/bin/python tools/compare/training/methods.py optimisers AUTOENCODER.onnx train-images-idx3-ubyte.gz
    build/compare/bin/python tools/compare/training/methods.py auto models/digits_fully_connected.onnx --data DATA.npz

optimisers: the steps after which an autoencoder of 640 numbers has the loss that the best learning rate of Adam reaches,
for each optimiser and learning rate; the MNIST images are scaled to 20 x 32.
auto: `--auto` against a grid of 20 trainings, by the validation loss, for three seeds; exit code 1 if it is on average
more than 10 % worse than the best of the grid or costs more than a quarter of its time.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Sequence

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


class Trainer:
    """Runs trainings of a model on data, with options in common."""

    def __init__(self, options: argparse.Namespace, data: Path, shared: Sequence[object]) -> None:
        self.words = [options.hoist, "train", options.model, "--data", data, "--initialise", "he", "--epochs", options.epochs, "--batch", options.batch, *shared]
        self.folder, self.seed = data.parent, options.seed

    def run(self, *more: object) -> tuple[dict[str, Any], float]:
        """The answer, and the seconds without compilation."""
        words = [*self.words, *(() if "--seed" in more else ("--seed", self.seed)), *more, "--no-check", "--force", "-o", self.folder / "out.onnx", "--json",
                 self.folder / "answer.json"]
        start = time.monotonic()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        if done.returncode == 1:  # the loss is not a finite number
            return {"epochs": [], "steps": 0}, time.monotonic() - start
        answer: dict[str, Any] = json.loads((self.folder / "answer.json").read_text())
        return answer, answer["seconds"]


def images_of(path: Path, count: int) -> np.ndarray:
    """[count][640]: images of 28 x 28, scaled to 20 x 32 by linear interpolation."""
    with gzip.open(path) as file:
        pixels = np.frombuffer(file.read(16 + 784 * count)[16:], np.uint8).reshape(-1, 28, 28) / np.float32(255)
    for axis, size in ((1, 20), (2, 32)):
        place = np.clip((np.arange(size) + 0.5) * 28 / size - 0.5, 0, 27)
        low = np.floor(place).astype(int)
        high, share = np.minimum(low + 1, 27), (place - low).astype(np.float32)
        shape = [1, 1, 1]
        shape[axis] = size
        share = share.reshape(shape)
        pixels = pixels.take(low, axis) * (1 - share) + pixels.take(high, axis) * share
    return pixels.reshape(len(pixels), 640).astype(np.float32)


def input_of(options: argparse.Namespace) -> str:
    done = subprocess.run([options.hoist, "inspect", options.model, "--json", "-"], capture_output=True, text=True, check=True)
    name: str = json.loads(done.stdout)["inputs"][0]["name"]
    return name


def optimisers(options: argparse.Namespace, folder: Path) -> bool:
    images = images_of(options.images, options.count)
    np.savez(folder / "data.npz", **{input_of(options): images, "target": images})
    trainer = Trainer(options, folder / "data.npz", ["--loss", "mse"])
    rates = {"adam": (0.0001, 0.0003, 0.001, 0.003), "shampoo": (0.0001, 0.0003, 0.001, 0.003),
             "momentum": (0.01, 0.03, 0.1, 0.3)}
    curves = {}
    for optimiser in options.optimisers:
        for rate in rates[optimiser.split(":")[0]]:
            answer, seconds = trainer.run("--optimiser", optimiser, "--learning-rate", rate)
            curves[optimiser, rate] = [epoch["loss"] for epoch in answer["epochs"]], seconds
            print(f"{optimiser:28} {rate:8g}  last loss {(curves[optimiser, rate][0] or [float('nan')])[-1]:.6f}, "
                  f"{seconds:.1f} s", flush=True)
    ends = {key: curve[-1] for key, (curve, _) in curves.items() if curve}
    best = {name: min((key for key in ends if key[0] == name), key=ends.__getitem__) for name in options.optimisers}
    target = ends[best["adam"]]
    steps = options.count // options.batch
    print(f"\nepochs of {steps} steps; the loss {target:.6f} is that of adam at {best['adam'][1]:g} after {options.epochs}\n")
    print("| optimiser | learning rate | last loss | steps to adam's | ms a step |\n|---|---|---|---|---|")
    needed = {}
    for name, key in best.items():
        curve, seconds = curves[key]
        reached = [i + 1 for i, loss in enumerate(curve) if loss <= target]
        needed[name] = reached[0] * steps if reached else None
        print(f"| {name} | {key[1]:g} | {curve[-1]:.6f} | {needed[name] or 'not reached'} | "
              f"{1e3 * seconds / (len(curve) * steps):.1f} |")
    shampoo = [needed[name] for name in needed if name.startswith("shampoo")]
    return any(count is not None and count < (needed["adam"] or 0) for count in shampoo)


def least(answer: dict[str, Any]) -> float:
    return min((epoch["validation"]["loss"] for epoch in answer["epochs"]), default=float("inf"))


def auto(options: argparse.Namespace, folder: Path) -> bool:
    with np.load(options.data) as file:
        arrays = dict(file)
    order = np.random.default_rng(1).permutation(len(next(iter(arrays.values()))))
    parts = {"validation": order[:len(order) // 4], "data": order[len(order) // 4:]}
    for name, samples in parts.items():
        np.savez(folder / f"{name}.npz", **{key: array[samples] for key, array in arrays.items()})
    shared = ["--validation", folder / "validation.npz", "--optimiser", options.optimiser, "--loss", options.loss]
    trainer = Trainer(options, folder / "data.npz", shared)
    print("| seed | best of the grid (rate, decay, clip) | its least validation loss | of --auto | ratio | time of the grid's |\n"
          "|---|---|---|---|---|---|")
    ratios, shares = [], []
    for seed in range(options.seed, options.seed + 3):
        rows, grid_seconds = [], 0.0
        for rate, decay, clip in itertools.product((0.0001, 0.0003, 0.001, 0.003, 0.01), (0.0001, 0.01), (1, 10)):
            answer, seconds = trainer.run("--learning-rate", rate, "--weight-decay", decay, "--clip", clip, "--seed", seed)
            rows.append((least(answer), rate, decay, clip))
            grid_seconds += seconds
        best, *where = min(rows)
        answer, seconds = trainer.run("--auto", options.names, "--learning-rate", options.first, "--seed", seed)
        ratios.append(least(answer) / best)
        shares.append(seconds / grid_seconds)
        print(f"| {seed} | {', '.join(f'{value:g}' for value in where)} | {best:.5f} | {least(answer):.5f} | "
              f"{ratios[-1]:.2f} | {shares[-1]:.2f} |", flush=True)
    print(f"| mean | | | | {np.mean(ratios):.2f} | {np.mean(shares):.2f} |")
    return bool(np.mean(ratios) <= 1.1 and np.mean(shares) <= 0.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", default=ROOT / "build" / "release" / "hoist", type=Path)
    parser.add_argument("--seed", default=1, type=int)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("optimisers")
    one.add_argument("model", type=Path)
    one.add_argument("images", type=Path)
    one.add_argument("--count", default=10000, type=int)
    one.add_argument("--epochs", default=20, type=int)
    one.add_argument("--batch", default=100, type=int)
    one.add_argument("--optimisers", nargs="+", default=["adam", "momentum", "shampoo"])
    two = kinds.add_parser("auto")
    two.add_argument("model", type=Path)
    two.add_argument("--data", required=True, type=Path)
    two.add_argument("--epochs", default=30, type=int)
    two.add_argument("--batch", default=32, type=int)
    two.add_argument("--optimiser", default="adamw")
    two.add_argument("--loss", default="cross-entropy")
    two.add_argument("--first", default=0.001, type=float, help="the learning rate with which --auto begins")
    two.add_argument("--names", default="lr,weight-decay,clip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = (optimisers if options.kind == "optimisers" else auto)(options, Path(folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
