"""Exceptions."""

from __future__ import annotations

import enum
from typing import Sequence

from ._findings import Finding


class Status(enum.IntEnum):
    """The kind of a failure: hoist_status of the C runtime, and NO_LIBRARY of Python."""

    NO_LIBRARY = -1
    OK = 0
    BAD_ARGUMENT = 1
    BAD_BUNDLE = 2
    NO_DEVICE = 3
    DEVICE_ERROR = 4
    OUT_OF_MEMORY = 5
    MISMATCH = 6
    BAD_EXTENT = 7
    BAD_VALUE = 8
    BAD_SIZE = 9
    TOO_MANY_ITERATIONS = 10


class Error(Exception):
    """A failed call: `status` is its kind, `message` names the offender."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(f"{message} ({status.name})")
        self.status = status
        self.message = message


class ArgumentError(Error, ValueError):
    """A wrong argument: a name, an element type, a shape, a string, or a closed bundle."""


class VerificationError(Error):
    """The self-check found a difference. `findings` are all of its lines, passed ones included."""

    def __init__(self, status: Status, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(status, message)
        self.findings = list(findings)


_ARGUMENTS = {Status.BAD_ARGUMENT, Status.BAD_VALUE, Status.BAD_SIZE}


def error_of(status: Status, message: str) -> Error:
    """The exception for a status that the C runtime returned."""
    return ArgumentError(status, message) if status in _ARGUMENTS else Error(status, message)
