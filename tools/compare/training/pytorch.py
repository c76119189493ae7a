"""Compares `hoist train` with PyTorch. Development only; needs PyTorch and onnx.

    taskset -c 1 nice -n -20 python tools/compare/training/pytorch.py speed [--only resnet8] [--rounds 5]
    python tools/compare/training/pytorch.py accuracy cifar10_train.bin.gz cifar10_test.bin.gz [--epochs 100] [--seeds 3]

speed: milliseconds a step and memory for an MLP, ResNet-8, MobileNet and a small transformer with Adam. hoist, PyTorch and
torch.compile train the same network on the same data. Each is a process of its own that is stopped while the others run
an epoch; the table shows the lower quartile of the epochs. Memory is the largest resident size, during the steps and with
compilation before them. Exit code 1 if hoist has less than 0.9 of the steps, or more than 1.2 times the memory.
accuracy: right answers on test images after the same schedule and augmentation, from the same first weights, by seed.
Exit code 1 if hoist's are fewer than PyTorch's by more than chance explains.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from networks import CASES, Case, export, pictures

ROOT = Path(__file__).resolve().parents[3]
LEAST_SPEED, MOST_MEMORY = 0.9, 1.2


def changed(images: Any) -> Any:
    """Half of the images flipped, and each moved by up to 4 pixels."""
    import torch
    from torch.nn import functional as F

    count, _, height, width = images.shape
    flips = torch.rand(count) < 0.5
    images = torch.where(flips[:, None, None, None], images.flip(3), images)
    padded = F.pad(images, (4, 4, 4, 4))
    moves = torch.randint(0, 9, (count, 2)).tolist()
    return torch.stack([image[:, y:y + height, x:x + width] for image, (y, x) in zip(padded, moves)])


def torch_loop(options: argparse.Namespace) -> None:
    """Trains in this process; prints a line for each epoch, and at the end the number of right answers if there are tests."""
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    network = CASES[options.case].make()
    network.train()
    with np.load(options.data) as file:
        samples, labels = torch.from_numpy(file["x"]), torch.from_numpy(file["labels"])

    def loss_of(x: Any, y: Any) -> Any:
        return F.cross_entropy(network(x), y)

    step = torch.compile(loss_of) if options.compiled else loss_of
    optimiser = torch.optim.Adam(network.parameters(), options.rate, fused=True)
    batch = options.batch
    steps = len(labels) // batch
    for epoch in range(options.epochs):
        order = torch.randperm(len(labels))
        total = 0.0
        for i in range(steps):
            if options.cosine:
                share = (epoch + i / steps) / options.epochs
                optimiser.param_groups[0]["lr"] = options.rate * 0.5 * (1 + math.cos(math.pi * share))
            chosen = order[i * batch:(i + 1) * batch]
            x = samples[chosen]
            optimiser.zero_grad(set_to_none=True)
            loss = step(changed(x) if options.augment else x, labels[chosen])
            loss.backward()
            optimiser.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}", flush=True)
    if options.test:
        network.eval()
        with np.load(options.test) as file, torch.no_grad():
            found = network(torch.from_numpy(file["x"])).argmax(1)
            print(int((found == torch.from_numpy(file["labels"])).sum()))


class Engine:
    """A training in a process that is stopped between measurements."""

    def __init__(self, words: list[object], log: Path) -> None:
        self.log = log.open("w+")
        self.times: list[float] = []
        self.line = ""
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"})
        for _ in range(2):
            self._epoch()
        self.peak = self._memory()
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # the peak begins again
        self.process.send_signal(signal.SIGSTOP)

    def _memory(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def _epoch(self) -> None:
        assert self.process.stdout is not None
        while not self.line.startswith("epoch") or self.process.poll() is not None:
            self.line = self.process.stdout.readline()
            if not self.line:
                self.log.seek(0)
                sys.exit(f"{self.process.args}: {self.log.read()}")
        self.loss, self.line = self.line.split("loss ")[1].split(",")[0].strip(), ""

    def measure(self) -> None:
        start = time.monotonic()
        self.process.send_signal(signal.SIGCONT)
        self._epoch()
        self.times.append(time.monotonic() - start)
        self.process.send_signal(signal.SIGSTOP)

    def end(self) -> float:
        """The largest memory of the measured epochs, in MB."""
        memory = self._memory()
        self.process.kill()
        self.process.wait()
        return memory


def torch_words(name: str, data: Path, seed: int, batch: int, options: argparse.Namespace) -> list[object]:
    return [sys.executable, __file__, "loop", name, "--data", data, "--seed", seed, "--batch", batch, "--rate", options.rate,
            "--threads", options.threads]


def speed_of(name: str, case: Case, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    export(case, options.seed, folder / "model.onnx")
    samples, labels = case.samples(case.batch * case.steps)
    np.savez(folder / "data.npz", x=samples, labels=labels)
    peer = [*torch_words(name, folder / "data.npz", options.seed, case.batch, options), "--epochs", 10**6]
    engines = {
        "hoist": Engine([options.hoist, "train", folder / "model.onnx", "--data", folder / "data.npz", "--batch", case.batch,
                         "--learning-rate", options.rate, "--epochs", 10**6, "--threads", options.threads, "--no-check",
                         "--force", "-o", folder / "out.onnx"], folder / "hoist.log"),
        "pytorch": Engine(peer, folder / "pytorch.log"),
        "compiled": Engine([*peer, "--compiled"], folder / "compiled.log"),
    }
    for _ in range(options.rounds):
        for engine in engines.values():
            engine.measure()
    losses = {key: engine.loss for key, engine in engines.items()}
    print(f"{name}: losses after {options.rounds + 2} epochs: {losses}", file=sys.stderr)
    return {"name": f"{name}, batch {case.batch}",
            "ms": {key: 1e3 * float(np.quantile(e.times, 0.25)) / case.steps for key, e in engines.items()},
            "peak": {key: engine.peak for key, engine in engines.items()},
            "memory": {key: engine.end() for key, engine in engines.items()}}


def speed(options: argparse.Namespace, folder: Path) -> bool:
    results = [speed_of(name, case, folder, options) for name, case in CASES.items() if options.only in name]
    good = True
    print("| network | ms: hoist | PyTorch | torch.compile | steps | MB: hoist | PyTorch | torch.compile | memory | MB with "
          "compilation |\n" + "|---" * 10 + "|")
    for result in results:
        ms, memory, peak = result["ms"], result["memory"], result["peak"]
        steps = min(ms["pytorch"], ms["compiled"]) / ms["hoist"]
        share = memory["hoist"] / min(memory["pytorch"], memory["compiled"])
        good = good and steps >= LEAST_SPEED and share <= MOST_MEMORY
        cells = [result["name"], *(f"{value:.2f}" for value in ms.values()), f"{steps:.2f}",
                 *(f"{value:.0f}" for value in memory.values()), f"{share:.2f}",
                 ", ".join(f"{value:.0f}" for value in peak.values())]
        print("| " + " | ".join(cells) + " |")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return good


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval of 95 %."""
    z, p = 1.96, right / count
    middle, half = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def accuracy(options: argparse.Namespace, folder: Path) -> bool:
    counts = {}
    for name, path in (("train", options.train), ("test", options.test)):
        images, labels = pictures(path)
        np.savez(folder / f"{name}.npz", x=images, labels=labels)
        counts[name] = len(labels)
    right: dict[str, list[int]] = {"hoist": [], "PyTorch": []}
    print("| seed | hoist | PyTorch |\n|---|---|---|")
    for seed in range(1, options.seeds + 1):
        export(CASES["resnet8"], seed, folder / "model.onnx")
        words = [options.hoist, "train", folder / "model.onnx", "--data", folder / "train.npz", "--validation",
                 folder / "test.npz", "--epochs", options.epochs, "--batch", options.batch, "--learning-rate", options.rate,
                 "--schedule", "cosine", "--augment", "flip,crop=4", "--seed", seed, "--threads", options.threads,
                 "--no-check", "--force", "-o", folder / "out.onnx", "--json", folder / "answer.json"]
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
        last = json.loads((folder / "answer.json").read_text())["epochs"][-1]
        right["hoist"].append(round(last["validation"]["right"] * counts["test"]))
        words = [*torch_words("resnet8", folder / "train.npz", seed, options.batch, options), "--epochs", options.epochs,
                 "--cosine", "--augment", "--test", folder / "test.npz"]
        done = subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True)
        right["PyTorch"].append(int(done.stdout.split()[-1]))
        print(f"| {seed} | {right['hoist'][-1]} | {right['PyTorch'][-1]} |", flush=True)
    every = counts["test"] * options.seeds
    sums = {name: sum(found) for name, found in right.items()}
    ends = {name: "{:.1%} to {:.1%}".format(*interval(found, every)) for name, found in sums.items()}
    print("| of all | " + " | ".join(f"{sums[name] / every:.1%} ({ends[name]})" for name in right) + " |")
    return interval(sums["hoist"], every)[1] >= sums["PyTorch"] / every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one, two, three = (kinds.add_parser(name) for name in ("speed", "accuracy", "loop"))
    for each, rate in ((one, 0.001), (two, 0.003), (three, 0.001)):
        each.add_argument("--hoist", default=ROOT / "build" / "release" / "hoist", type=Path)
        each.add_argument("--threads", default=1, type=int)
        each.add_argument("--rate", default=rate, type=float)
        each.add_argument("--seed", default=1, type=int)
    one.add_argument("--only", default="")
    one.add_argument("--rounds", default=9, type=int)
    one.add_argument("--json", type=Path)
    two.add_argument("train", type=Path)
    two.add_argument("test", type=Path)
    two.add_argument("--seeds", default=3, type=int)
    for each in (two, three):
        each.add_argument("--epochs", default=100, type=int)
        each.add_argument("--batch", default=32, type=int)
    three.add_argument("case", choices=CASES)
    three.add_argument("--data", required=True)
    three.add_argument("--test")
    for name in ("--compiled", "--cosine", "--augment"):
        three.add_argument(name, action="store_true")
    options = parser.parse_args()
    if options.kind == "loop":
        torch_loop(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        good = (speed if options.kind == "speed" else accuracy)(options, Path(folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
