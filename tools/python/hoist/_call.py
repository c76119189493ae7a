"""Commands of the compiler: their words in, their answers out, their failures as exceptions."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence

from . import _core
from ._options import Words
from .errors import Error, Problem, error_of

logger = logging.getLogger("hoist")
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO, "info": logging.INFO}


def as_program(words: Sequence[str]) -> int:
    """Runs a command in this process: returns its exit code, prints messages on standard error."""
    code, problems, text, _ = _core.command(list(words), None)
    print(text, end="")
    for where, what, _ in problems:
        print(f"hoist: {where}: {what}" if where else f"hoist: {what}", file=sys.stderr)
    return code


# Candidates of a search are measured in processes of their own, which run this program again with its module path.
if sys.executable:
    _core.set_program([sys.executable, "-c",
                       f"import sys; sys.path[:] = {[os.path.abspath(folder) for folder in sys.path]!r}; "
                       f"from {__package__} import _call; sys.exit(_call.as_program(sys.argv[1:]))"])

_progress: Callable[[str], object] | None = None


def set_progress(function: Callable[[str], object] | None) -> None:
    """Calls `function` with the progress of long calls in a few words, and with "" at their end; None removes it.

    It is called from another thread, and must not call hoist.
    """
    global _progress
    _progress = function


@dataclass(frozen=True)
class Answer:
    """The result of a command of the program."""

    exit_code: int  #: 0 success, 1 a negative answer
    text: str  #: its printed output
    json: Any = None  #: its --json output (tools/json.md); None if not requested
    file: bytes = b""  #: the output of another option for the file "-"
    problems: tuple[Problem, ...] = ()  #: the reasons of an answer of no
    notes: tuple[Problem, ...] = field(default=(), repr=False)  #: notes and warnings, also sent to the logger "hoist"

    def __str__(self) -> str:
        return self.text


class Listener:
    """Receives messages: all go to the logger, and errors are collected."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.notes: list[Problem] = []

    def __call__(self, kind: str, where: str, what: str, hint: str) -> None:
        if kind == "progress":
            if _progress is not None:
                _progress(what)
            return
        problem = Problem(where, what, hint)
        if kind == "error":
            self.errors.append(problem)
        elif kind in ("note", "warning"):
            self.notes.append(problem)
        logger.log(_LEVELS.get(kind, logging.DEBUG), "%s", problem)


def run(words: Sequence[str], answers: Sequence[int] = (0,)) -> Answer:
    """Runs a command. Raises Error if its exit code is not in `answers`."""
    heard = Listener()
    code, problems, text, written = _core.command(list(words), heard)
    all_problems = (*heard.errors, *(Problem(*problem) for problem in problems))
    if code not in answers:
        raise error_of(code, all_problems)
    if "--json=-" in words or ("--json", "-") in zip(words, words[1:]):
        return Answer(code, text, json.loads(written) if written else None, b"", all_problems, tuple(heard.notes))
    return Answer(code, text, None, written, all_problems, tuple(heard.notes))


def ask(command: str, subject: Sequence[str], known: type, options: Mapping[str, Any],
        answers: Sequence[int] = (0,)) -> Answer:
    """Runs a command with options and returns its JSON."""
    with Words(known, options) as words:
        return run([command, *words, "--json=-", "--", *subject], answers)


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """Converts failures of the extension to exceptions of this package."""
    try:
        yield
    except _core.Failure as failure:
        code, problems = failure.args
        raise error_of(code, [Problem(*problem) for problem in problems]) from None


def command(*words: object) -> Answer:
    """Any command of the program, by its words: `hoist.command("bench", "digits.hoist", "--seconds", 2).text`.

    Raises Error where the program would end with another exit code than 0 or 1.
    """
    return run([str(word) for word in words], (0, 1))


__all__ = ["Answer", "Error", "ask", "command", "raising", "run", "set_progress"]
