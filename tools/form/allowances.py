"""Findings that are left, by folder: a file with one folder per line, whose numbers may only fall.

More findings than allowed are an error, and so are fewer, until --write has lowered the number. Files may move between
folders: --write compares the sums.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple


def folder_of(path: str) -> str:
    """The first two folders of a path, "." for files at the root."""
    return "/".join(Path(path).parent.parts[:2]) or "."


class Allowance(NamedTuple):
    path: str  # of its file
    script: str  # the check whose findings it counts

    def read(self, root: Path) -> dict[str, int]:
        path = root / self.path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return {name: int(count) for name, count in (line.split() for line in lines if line and not line.startswith("#"))}

    def compare(self, root: Path, counts: Counter[str]) -> int:
        allowed = self.read(root)
        failed = 0
        for folder in sorted({*counts, *allowed}):
            have, may = counts[folder], allowed.get(folder, 0)
            if have == may:
                continue
            failed = 1
            remedy = f"{self.script} --list {folder}" if have > may else f"lower it with {self.script} --write"
            print(f"error: {folder}: {have} findings, {may} allowed: {remedy}", file=sys.stderr)
        print(f"{Path(self.script).name}: {sum(counts.values())} findings, {sum(allowed.values())} allowed")
        return failed

    def write(self, root: Path, counts: Counter[str]) -> int:
        before, after = sum(self.read(root).values()), sum(counts.values())
        if (root / self.path).exists() and after > before:
            print(f"error: {after} findings, {before} allowed: the allowance only falls", file=sys.stderr)
            return 1
        head = f"# Findings of {self.script} that are left, by folder. Numbers only fall: {self.script} --write.\n"
        (root / self.path).write_text(head + "".join(f"{name} {counts[name]}\n" for name in sorted(counts) if counts[name]),
                                      encoding="utf-8")
        print(f"{Path(self.script).name}: {after} findings allowed")
        return 0
