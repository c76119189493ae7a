"""Options of the hoist program as keyword arguments: the same names, with _ for -, and the same meanings.

    dim={"N": 8}           --dim N=8         a dictionary is NAME=VALUE, once for each name
    dim={"N": [1, 8]}      --dim N=1,8       several values of one name are joined by commas
    mean=(0.5, 0.4, 0.3)   --mean 0.5,0.4,0.3
    pass_={"fusion": "none"}  --pass fusion=none
    strict=True            --strict          False and None are not given
    calibrate={"x": a}     --calibrate FILE  of arrays, which a temporary .npz takes
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from ._option_types import OLD_NAMES

_REPEATED = frozenset({"rule", "budget"})


class Words:
    """Yields the words of a command. Temporary files of arguments exist until the `with` ends."""

    def __init__(self, known: type, given: Mapping[str, Any]) -> None:
        self._stack = ExitStack()
        self._known = known
        self._given = given

    def __enter__(self) -> list[str]:
        known = sorted(self._known.__annotations__)
        for name in self._given:
            if name not in known and not (name in OLD_NAMES and "pass_" in known):
                raise TypeError(f"unknown option {name!r}; there are {', '.join(known)}")
        with ExitStack() as stack:
            self._stack = stack
            out = [word for name, value in self._given.items() for word in self._words(name, value)]
            self._stack = stack.pop_all()
        return out

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _words(self, name: str, value: Any) -> list[str]:
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            return []
        if value is True:
            return [option]
        if name in ("calibrate", "verify_data", "data", "validation") and isinstance(value, Mapping):
            return [f"{option}={self._data(value)}"]
        if name == "preferences" and not isinstance(value, (str, os.PathLike)):
            path = self._folder() / "preferences.txt"
            path.write_text("".join(f"{statement}\n" for statement in value), encoding="utf-8")
            return [f"{option}={path}"]
        if isinstance(value, Mapping):
            return [f"{option}={key}={self._value(name, each)}" for key, each in value.items()]
        if name in _REPEATED and not isinstance(value, str):
            return [f"{option}={each}" for each in value]
        return [f"{option}={self._value(name, value)}"]

    def _value(self, name: str, value: Any) -> str:
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if name in ("value", "initial"):
            if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
                path = self._folder() / "value.npy"
                np.save(path, array_of(value), allow_pickle=False)
                return str(path)
            if isinstance(value, (list, tuple)):
                return "[" + ",".join(self._value(name, each) for each in value) + "]"
        elif isinstance(value, (list, tuple)):
            return ",".join(self._value(name, each) for each in value)
        return str(value)

    def _folder(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="hoist-")))

    def _data(self, arrays: Mapping[str, Any]) -> Path:
        path = self._folder() / "data.npz"
        # numpy.savez reserves some names.
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.save(file, array_of(array), allow_pickle=False)
        return path


def array_of(value: Any) -> Any:
    """Converts to a numpy array, without a copy if possible."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def folder_of(owner: object) -> Path:
    """A temporary folder that is removed with its owner."""
    path = tempfile.mkdtemp(prefix="hoist-")
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return Path(path)
