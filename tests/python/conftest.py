"""Bundles that the built hoist compiles once for all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

SOURCE = Path(os.environ["HOIST_SOURCE_DIR"])
DIGITS = SOURCE / "models" / "digits_fully_connected.onnx"
CORPUS = SOURCE / "tests" / "fuzz" / "corpus" / "onnx_model"
LIBRARY = next(Path(os.environ["HOIST_SHARED_RUNTIME"]).glob("libhoist_runtime.so.[0-9]"))


def hoist(*words: str | Path) -> str:
    ran = subprocess.run([os.environ["HOIST_PROGRAM"], *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test uses the built runtime by default."""
    monkeypatch.setenv("HOIST_RUNTIME_LIBRARY", str(LIBRARY))


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    hoist("compile", DIGITS, "-o", folder / "digits.hoist", "--no-check")
    hoist("compile", DIGITS, "-o", folder / "sizes.hoist", "--no-check", "--dim", "N=1,4", "--target", "native")
    hoist("compile", DIGITS, "-o", folder / "range.hoist", "--no-check", "--dim", "N=1..64", "--target", "native")
    hoist("compile", CORPUS / "text.onnx", "-o", folder / "text.hoist", "--no-check")
    hoist("compile", CORPUS / "elements.onnx", "-o", folder / "elements.hoist", "--no-check")
    return folder


@pytest.fixture(scope="session")
def digits(bundles: Path) -> Path:
    return bundles / "digits.hoist"


@pytest.fixture
def copied(bundles: Path, tmp_path: Path) -> Iterator[Path]:
    """A native bundle to damage."""
    yield Path(shutil.copytree(bundles / "sizes.hoist", tmp_path / "copied.hoist"))
