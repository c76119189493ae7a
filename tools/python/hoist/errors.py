"""What goes wrong, as exceptions. Each kind is one of the program's exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    where: str  #: the file, the layer, the option; "" where nothing can be named
    what: str
    hint: str = ""  #: what to do about it

    def __str__(self) -> str:
        return (f"{self.where}: " if self.where else "") + self.what + (f" ({self.hint})" if self.hint else "")


class Error(Exception):
    """A call that failed, of all `problems` at once; `where`, `what` and `hint` are those of the first."""

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
    """The budget is not met, and so no bundle is written; best_effort=True writes that of the best point."""


class UsageError(Error, ValueError):
    """Arguments that are wrong, or do not go together."""


class InputError(Error, ValueError):
    """A file that is missing, damaged or does not fit, one that cannot be written, or a name that is not there."""


class DeviceError(Error, RuntimeError):
    """There is no such device, it fails, or memory runs out."""


class MismatchError(Error):
    """What was compiled computes other values than the model, or a self-check found a difference."""


_KINDS: dict[int, type[Error]] = {1: BudgetError, 2: UsageError, 3: InputError, 4: DeviceError, 5: MismatchError}


def error_of(code: int, problems: Iterable[Problem]) -> Error:
    """The exception for an exit code of the program."""
    return _KINDS.get(code, Error)(problems)
