"""Exceptions. Each kind corresponds to an exit code of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable


@dataclass(frozen=True)
class Problem:
    """One problem."""

    where: str  #: the file, the layer, the option; "" if there is none
    what: str
    hint: str = ""  #: a remedy

    def __str__(self) -> str:
        return (f"{self.where}: " if self.where else "") + self.what + (f" ({self.hint})" if self.hint else "")


class Error(Exception):
    """A failed call with all its `problems`; `where`, `what` and `hint` describe the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems) or (Problem("", "failed without a message"),)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def where(self) -> str:
        return self.problems[0].where

    @property
    def what(self) -> str:
        return self.problems[0].what

    @property
    def hint(self) -> str:
        return self.problems[0].hint


class BudgetError(Error):
    """The budget is not met, and no bundle is written; best_effort=True writes the bundle of the best point."""


class UsageError(Error, ValueError):
    """Wrong or contradictory arguments."""


class InputError(Error, ValueError):
    """A missing, damaged or unsuitable file, a file that cannot be written, or an unknown name."""


class DeviceError(Error, RuntimeError):
    """A missing or failing device, or memory that runs out."""


class MismatchError(Error):
    """A kernel differs from the interpreter, or a self-check found a difference."""


_KINDS: dict[int, type[Error]] = {1: BudgetError, 2: UsageError, 3: InputError, 4: DeviceError, 5: MismatchError}


def error_of(code: int, problems: Iterable[Problem]) -> Error:
    """The exception for an exit code of the program."""
    return _KINDS.get(code, Error)(problems)
