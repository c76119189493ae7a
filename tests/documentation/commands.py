"""Runs the commands of a page, in order, in one folder.

A block ```console has commands after "$ ", and after each command its output: every line shown has to be printed, in that
order; lines in between may be missing. "..." is any text, for example a time or the name of a device. A command has to
end with 0. A code block with a caption is a file of that name.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator


@dataclass
class Command:
    line: int
    text: str
    shown: list[str] = field(default_factory=list)


@dataclass
class File:
    name: str
    text: str


def steps(page: str) -> Iterator[Command | File]:
    """The commands and files of a page, from its beginning to its end."""
    kind, caption, body, begin = "", "", [], 0
    for number, line in enumerate(page.splitlines(), 1):
        if not kind:
            if line.startswith("```"):
                kind, caption, body, begin = line.strip("`{} ") or "text", "", [], number
            continue
        if line != "```":
            body.append(line)
            continue
        if kind == "console":
            command: Command | None = None
            for at, text in enumerate(body, begin + 1):
                if text.startswith("$ "):
                    if command:
                        yield command
                    command = Command(at, text[2:])
                elif command:
                    command.shown.append(text)
                else:
                    raise ValueError(f"line {at}: an output without a command")
            if command:
                yield command
        elif kind.startswith("code-block"):
            captions = [text for text in body if text.startswith(":caption: ")]
            if captions:
                caption = captions[0].removeprefix(":caption: ").strip()
                content = "\n".join(text for text in body if not text.startswith(":caption: ")).strip("\n")
                yield File(caption, content + "\n")
        kind = ""


def pattern_of(shown: str) -> re.Pattern[str]:
    """The pattern of a line: "..." is any text, and any number of blanks equals any other."""
    out = ""
    for part in re.split(r"(\.\.\.|\s+)", shown.strip()):
        if part == "...":
            out += ".*"
        elif part and part.isspace():
            out += r"\s+"
        else:
            out += re.escape(part)
    return re.compile(r"\s*" + out + r"\s*")


def missing(shown: list[str], printed: str) -> str | None:
    """The first shown line that is not printed after the preceding lines."""
    lines = iter(printed.splitlines())
    for text in shown:
        if text.strip() in ("...", ""):
            continue
        pattern = pattern_of(text)
        if not any(pattern.fullmatch(line) for line in lines):
            return text
    return None


def output_of(command: Command, where: str, folder: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command.text], cwd=folder, env=environment, text=True, timeout=600,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert ran.returncode == 0, f"{where}\nends with {ran.returncode}:\n{ran.stdout}"
    return ran.stdout


def run(page: Path, folder: Path, environment: dict[str, str], exact: bool = False) -> int:
    """The number of commands of the page; raises AssertionError for the first with another output. Exact: the outputs are
    shown as a whole."""
    count = 0
    for step in steps(page.read_text(encoding="utf-8")):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        count += 1
        where = f"{page.name}:{step.line}: {step.text}"
        printed = output_of(step, where, folder, environment)
        if exact:
            assert [line.rstrip() for line in printed.splitlines()] == step.shown, f"{where}\nprints something else:\n{printed}"
        lacking = missing(step.shown, printed)
        assert lacking is None, f"{where}\nshows what is not printed: {lacking}\n{printed}"
    return count


def update(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Writes the whole output of every command into the page."""
    text = page.read_text(encoding="utf-8")
    lines, out, at = text.split("\n"), [], 0
    for step in steps(text):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        out += lines[at:step.line]
        printed = output_of(step, f"{page.name}:{step.line}", folder, environment)
        out += [line.rstrip() for line in printed.splitlines()]
        at = step.line + len(step.shown)
    page.write_text("\n".join(out + lines[at:]), encoding="utf-8")
