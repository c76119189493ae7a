"""One line of a self-check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of a self-check."""

    subject: str  #: "file weights.bin", "kernel conv1" or "output logits"
    passed: bool
    message: str
    compared: int  #: positions compared; 0 for files
    largest_error: float  #: largest absolute difference among them
