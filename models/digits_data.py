"""The images of the classifiers of this folder, and the data files of a model: scikit-learn's digits, 1797 of 8x8 pixels
with values 0 to 16, divided by 16. 1000 train, 297 calibrate, 500 test; the sets are disjoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import numpy as np
from sklearn.datasets import load_digits

SEED = 20261121
TRAINING, CALIBRATION = 1000, 297

Part = tuple[np.ndarray, np.ndarray]


def digits() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images float32 [N][1][8][8] in 0 to 1 and labels int64 [N], split by a fixed shuffle."""
    data = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    images = (data.images[order, None] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int64)
    ends = (TRAINING, TRAINING + CALIBRATION)
    return dict(zip(("training", "calibration", "test"), zip(np.split(images, ends), np.split(labels, ends))))


def write_data(folder: Path, name: str, data: dict[str, Part], correct: Callable[[np.ndarray, np.ndarray], int]) -> dict[str, int]:
    """Writes NAME_calibration.npz and NAME_test.npz, and counts the model's right answers."""
    counts: dict[str, int] = {}
    for part in ("calibration", "test"):
        images, labels = data[part]
        np.savez_compressed(folder / f"{name}_{part}.npz", image=images, labels=labels)
        counts |= {f"{part}_correct": correct(images, labels), f"{part}_total": len(labels)}
    return counts


def write_accuracy(folder: Path, accuracies: dict[str, dict[str, int]]) -> None:
    """Writes the counts of these models into accuracy.json and keeps the counts of others."""
    path = folder / "accuracy.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | accuracies, indent=2) + "\n")
