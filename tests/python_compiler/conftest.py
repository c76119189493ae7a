"""The package hoist as it is installed, over the extension that is built."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

SOURCE = Path(os.environ["HOIST_SOURCE_DIR"])
BUILD = Path(os.environ["HOIST_PROGRAM"]).parent
MODELS = SOURCE / "models"
DIGITS = MODELS / "digits_fully_connected.onnx"
RESIDUAL = MODELS / "digits_residual.onnx"
#: Halide's package, which tools/setup installs.
DEPENDENCIES = next((SOURCE / "build" / "dependencies" / "python" / "lib").glob("python3*/site-packages"))

_installed = tempfile.TemporaryDirectory(prefix="hoist-package-")
PACKAGE = Path(_installed.name)
subprocess.run(["cmake", "--install", BUILD, "--component", "python", "--prefix", PACKAGE], check=True,
               capture_output=True)
if not list(PACKAGE.glob("hoist/_core*.so")):
    pytest.exit("skipped: the extension is not built (python3-dev)", returncode=77)
#: The package onnx, for tests of sessions; before Debian's packages, which are older than it needs.
SESSIONS = [str(folder) for folder in (SOURCE / "build" / "dependencies").glob("sessions-*[0-9a-f]")]
#: Environment of programs that use the package.
ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join([str(PACKAGE), *SESSIONS, str(DEPENDENCIES)])}
sys.path[:0] = [str(PACKAGE), *SESSIONS]
sys.path.append(str(DEPENDENCIES))


def pytest_unconfigure() -> None:
    _installed.cleanup()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, for files without a path."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
