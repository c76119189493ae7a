"""The version is the project's, from CMakeLists.txt; pyproject.toml defines everything else."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup

text = (Path(__file__).resolve().parents[2] / "CMakeLists.txt").read_text(encoding="utf-8")
found = re.search(r"^project\(hoist VERSION ([0-9.]+)", text, re.MULTILINE)
if found is None:
    raise SystemExit("setup.py: CMakeLists.txt names no version")
setup(version=found.group(1))
