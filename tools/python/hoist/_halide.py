"""Loads the library of the package halide."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


def load() -> None:
    """The extension finds the library if both packages are in one folder; otherwise it uses the one that is loaded
    here."""
    found = importlib.util.find_spec("halide")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        for name in ("lib64", "lib"):
            library = Path(folder) / name / "libHalide.so"
            if library.exists():
                ctypes.CDLL(str(library))
                return
