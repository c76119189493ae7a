"""Written by tools/python/option_types.py: options of the program as keyword arguments."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, TypedDict, Union

FileName = Union[str, "os.PathLike[str]"]
#: Arrays by the name of the model's input, [samples][the input's axes after the first], and "labels"; or a path.
Data = Union[FileName, Mapping[str, Any]]


class ModelOptions(TypedDict, total=False):
    """`hoist inspect --help` explains each."""

    dim: Mapping[str, int | Sequence[int]]
    training: int
    value: Mapping[str, Any]
    state: str | Mapping[str, str]
    initial: Mapping[str, Any]
    bound: Mapping[str, int]
    target: str | Sequence[str]
    profile: FileName
    device: str | int
    tuning: FileName
    strict: bool
    memory: float
    pass_: Mapping[str, str]
    rules: FileName
    steps: Mapping[str, FileName]


class CompileOptions(TypedDict, total=False):
    """`hoist compile --help` explains each."""

    force: bool
    programs: bool
    report: FileName
    dim: Mapping[str, int | Sequence[int]]
    training: int
    value: Mapping[str, Any]
    state: str | Mapping[str, str]
    initial: Mapping[str, Any]
    bound: Mapping[str, int]
    target: str | Sequence[str]
    profile: FileName
    device: str | int
    calibrate: Data
    verify_data: Data
    retrain: bool
    retrain_seed: int
    retrain_scales: bool
    retrain_labels: bool
    objective: str
    scale_channels: str
    preferences: FileName | Sequence[str]
    time: float
    record: FileName
    best_effort: bool
    layout: str
    resize: int | str
    crop: int | str
    colours: str
    scale: str | float
    mean: float | Sequence[float]
    std: float | Sequence[float]
    tune: bool | float
    tuning: FileName
    no_check: bool
    validate: bool
    strict: bool
    queue: str
    queue_token: FileName
    queue_credentials: FileName
    queue_authority: FileName
    queue_certificate: FileName
    queue_key: FileName
    memory: float
    pass_: Mapping[str, str]
    rules: FileName
    steps: Mapping[str, FileName]


class ChooseOptions(TypedDict, total=False):
    """`hoist report --help` explains each."""

    dim: Mapping[str, int | Sequence[int]]
    value: Mapping[str, Any]
    bound: Mapping[str, int]
    target: str | Sequence[str]
    profile: FileName
    device: str | int
    calibrate: Data
    verify_data: Data
    retrain: bool
    retrain_seed: int
    retrain_scales: bool
    retrain_labels: bool
    objective: str
    scale_channels: str
    preferences: FileName | Sequence[str]
    time: float
    record: FileName
    layout: str
    resize: int | str
    crop: int | str
    colours: str
    scale: str | float
    mean: float | Sequence[float]
    std: float | Sequence[float]
    tuning: FileName
    strict: bool
    queue: str
    queue_token: FileName
    queue_credentials: FileName
    queue_authority: FileName
    queue_certificate: FileName
    queue_key: FileName
    pass_: Mapping[str, str]


class BundleOptions(TypedDict, total=False):
    """`hoist bench --help` explains each."""

    dim: Mapping[str, int | Sequence[int]]
    device: str | int
    threads: int


class EvaluateOptions(TypedDict, total=False):
    """`hoist evaluate --help` explains each."""

    labels: FileName
    classes: bool
    dim: Mapping[str, int | Sequence[int]]
    device: str | int
    threads: int
    metric: str
    output: str
    layout: str
    resize: int | str
    crop: int | str
    colours: str
    scale: str | float
    mean: float | Sequence[float]
    std: float | Sequence[float]
    queue: str
    queue_token: FileName
    queue_credentials: FileName
    queue_authority: FileName
    queue_certificate: FileName
    queue_key: FileName
    samples_a_job: int


class VerifyOptions(TypedDict, total=False):
    """`hoist verify --help` explains each."""

    dim: Mapping[str, int | Sequence[int]]
    value: Mapping[str, Any]
    bound: Mapping[str, int]
    device: str | int
    threads: int
    data: Data
    all: bool
    positions: int
    derivation: bool
    model: FileName


class ExportOptions(TypedDict, total=False):
    """`hoist export --help` explains each."""

    force: bool
    budget: str
    calibrate: Data
    objective: str
    scale_channels: str
    record: FileName
    rule: str | Sequence[str]
    layout: str
    resize: int | str
    crop: int | str
    colours: str
    scale: str | float
    mean: float | Sequence[float]
    std: float | Sequence[float]


class GradientOptions(TypedDict, total=False):
    """`hoist grad --help` explains each."""

    force: bool
    loss: str
    dim: Mapping[str, int | Sequence[int]]
    training: int
    value: Mapping[str, Any]
    bound: Mapping[str, int]
    target: str | Sequence[str]
    profile: FileName
    device: str | int
    no_check: bool
    strict: bool
    memory: float
    pass_: Mapping[str, str]


class TrainOptions(TypedDict, total=False):
    """`hoist train --help` explains each."""

    force: bool
    labels: FileName
    distill: bool
    temperature: float
    of: str
    loss: str
    optimiser: str
    learning_rate: float
    schedule: str
    epochs: int
    batch: int | str
    accumulate: int
    weight_decay: float
    clip: float
    label_smoothing: float
    auto: str | Sequence[str]
    gradients: str
    freeze: str | Sequence[str]
    masks: FileName
    trunk: str
    freeze_trunk: bool
    initialise: str
    augment: str | Sequence[str]
    validation: Data | float
    patience: int
    checkpoint: FileName
    resume: bool
    step: FileName
    seed: int
    dim: Mapping[str, int | Sequence[int]]
    value: Mapping[str, Any]
    bound: Mapping[str, int]
    target: str | Sequence[str]
    profile: FileName
    device: str | int
    threads: int
    layout: str
    resize: int | str
    crop: int | str
    colours: str
    scale: str | float
    mean: float | Sequence[float]
    std: float | Sequence[float]
    no_check: bool
    strict: bool
    queue: str
    queue_token: FileName
    queue_credentials: FileName
    queue_authority: FileName
    queue_certificate: FileName
    queue_key: FileName
    memory: float
    pass_: Mapping[str, str]


#: Names of earlier versions, which the program still accepts.
OLD_NAMES = frozenset({
    "constants",
    "conv",
    "fold_memory",
    "fold_operations",
    "fuse",
    "loop_iterations",
    "string_pieces",
    "tables",
    "unrolled_steps",
})
