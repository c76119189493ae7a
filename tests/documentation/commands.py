"""The commands of a page, run as they stand there, in order, in one folder.

A block ```console has commands behind "$ ", and below each what it prints: every line that is shown has to be printed, in that
order, whatever stands between them. "..." is any text, a time or the name of a device for example. A command has to end with 0. A code
block with a caption is a file of that name.
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
    """What a page has, from its beginning to its end."""
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
    """Of a line: "..." is any text, blanks are as many as there are."""
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
    """The first line that is shown and not printed, behind those before it."""
    lines = iter(printed.splitlines())
    for text in shown:
        if text.strip() in ("...", ""):
            continue
        pattern = pattern_of(text)
        if not any(pattern.fullmatch(line) for line in lines):
            return text
    return None


def run(page: Path, folder: Path, environment: dict[str, str]) -> int:
    """How many commands the page has; raises AssertionError with the first that does something else."""
    count = 0
    for step in steps(page.read_text(encoding="utf-8")):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        count += 1
        where = f"{page.name}:{step.line}: {step.text}"
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", step.text], cwd=folder, env=environment, text=True, timeout=600,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert ran.returncode == 0, f"{where}\nends with {ran.returncode}:\n{ran.stdout}"
        lacking = missing(step.shown, ran.stdout)
        assert lacking is None, f"{where}\nshows what is not printed: {lacking}\n{ran.stdout}"
    return count
