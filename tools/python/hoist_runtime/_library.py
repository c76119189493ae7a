"""Finds the C runtime: a named or installed shared library, or one compiled from a bundle's source."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import threading
from pathlib import Path

from . import _c
from .errors import Error, Status

VARIABLE = "HOIST_RUNTIME_LIBRARY"
OWN_SOURCE = "bundle"
_NAME = f"libhoist_runtime.so.{_c.API_VERSION}"
_PACKAGES = "on Debian: gcc, and for OpenCL ocl-icd-opencl-dev and opencl-headers"

_loaded: dict[str, ctypes.CDLL] = {}
_loading = threading.Lock()


def load(bundle: Path | None) -> ctypes.CDLL:
    """The runtime for a bundle, or for no bundle in particular. Every library is loaded once.

    If HOIST_RUNTIME_LIBRARY names a file, only this file is tried. Otherwise the installed library is tried, then the
    bundle's own source, which is compiled at its first use. HOIST_RUNTIME_LIBRARY=bundle skips the installed library. Raises Error(NO_LIBRARY) with the list of attempts.
    """
    with _loading:
        wanted = os.environ.get(VARIABLE, "")
        if wanted and wanted != OWN_SOURCE:
            try:
                return _open(wanted)
            except OSError as problem:
                raise _failure(f"{VARIABLE} names {wanted}, which cannot be loaded: {problem}") from None
        tried = []
        if not wanted:
            for candidate in _installed():
                try:
                    return _open(candidate)
                except OSError as problem:
                    tried.append(str(problem))
        if bundle is None:
            raise _failure("; ".join(tried + [f"install hoist, or set {VARIABLE} to its {_NAME}"]))
        try:
            return _open(str(_compiled(bundle)))
        except OSError as problem:
            raise _failure("; ".join(tried + [f"the bundle's own runtime cannot be loaded: {problem}"])) from None


def _failure(message: str) -> Error:
    return Error(Status.NO_LIBRARY, message)


def _open(path: str) -> ctypes.CDLL:
    """Raises OSError if the file is not a library, Error if it has another version."""
    if path not in _loaded:
        library = ctypes.CDLL(path)
        try:
            library.hoist_api_version.restype = ctypes.c_int
            version = library.hoist_api_version()
            if version == _c.API_VERSION:
                _c.declare(library)
        except AttributeError as missing:
            raise _failure(f"{path} is not a runtime of this hoist, or an older one ({missing}); a bundle is compiled again by "
                           "hoist compile") from None
        if version != _c.API_VERSION:
            raise _failure(f"{path} has version {version} of the C API, this package needs version {_c.API_VERSION}: "
                           "install the hoist_runtime that belongs to it")
        _loaded[path] = library
    return _loaded[path]


def _installed() -> list[str]:
    """Candidates: next to this package, as in the package hoist; by name, for the system's loader; and in the prefix of
    the hoist program."""
    beside = Path(__file__).with_name(_NAME)
    found = [str(beside)] if beside.exists() else []
    found.append(_NAME)
    program = shutil.which("hoist")
    if program is not None:
        prefix = Path(program).resolve().parent.parent
        for folder in ("lib/" + str(sysconfig.get_config_var("MULTIARCH") or ""), "lib", "lib64"):
            library = prefix / folder / _NAME
            if library.exists():
                found.append(str(library))
    return found


def _compiled(bundle: Path) -> Path:
    """The library of the bundle's source, cached or compiled now."""
    source, header = bundle / "runtime" / "hoist_runtime.c", bundle / "runtime" / "hoist_runtime.h"
    try:
        texts = [source.read_bytes(), header.read_bytes()]
        makefile = (bundle / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise Error(Status.BAD_BUNDLE, f"{bundle} is not a bundle, or is incomplete: {problem}") from None
    compiler = _compiler()
    before, after = _flags(makefile)
    command = [*compiler, "-std=c99", "-O2", "-fPIC", "-shared", *before]
    key = hashlib.sha256()
    for part in [*texts, "\0".join([*command, *after, platform.machine(), platform.system()]).encode()]:
        key.update(hashlib.sha256(part).digest())
    folder = _cache()
    library = folder / f"libhoist_runtime-{key.hexdigest()[:32]}.so"
    if library.exists():
        return library
    # The file is renamed when complete, so that another process never loads a part of it.
    descriptor, made = tempfile.mkstemp(prefix=".making-", suffix=".so", dir=folder)
    os.close(descriptor)
    try:
        ran = subprocess.run([*command, "-o", made, str(source), *after], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", check=False)
        if ran.returncode != 0:
            raise _failure(f"{shlex.join(compiler)} does not compile the bundle's runtime ({_PACKAGES}):\n"
                           f"{ran.stdout.strip()}")
        os.chmod(made, 0o700)
        os.replace(made, library)
    except OSError as problem:
        raise _failure(f"{shlex.join(compiler)} cannot be started: {problem}") from None
    finally:
        if os.path.exists(made):
            os.unlink(made)
    return library


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return [name]
    raise _failure("no shared library of hoist's runtime is installed, and there is no C compiler (cc, gcc, clang or the one "
                   f"that CC names) to make it of the bundle's source ({_PACKAGES}): install hoist or a compiler, or "
                   f"set {VARIABLE} to a {_NAME}")


def _flags(makefile: str) -> tuple[list[str], list[str]]:
    """The flags of the bundle's Makefile: macros and include folders, and libraries."""
    before = sorted({word for word in re.findall(r"-DHOIST_\w+", makefile) if word != "-DHOIST_LINKED_KERNELS"})
    after = ["-lOpenCL"] if "-lOpenCL" in makefile else []
    after += ["-lpthread", "-ldl", "-lm"]
    for library in sorted(set(re.findall(r"pkg-config --libs ([\w.+-]+)", makefile))):
        for option, words in (("--cflags", before), ("--libs", after)):
            try:
                ran = subprocess.run(["pkg-config", option, library], capture_output=True, text=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                raise _failure(f"the bundle's runtime needs {library}, which pkg-config does not find (on Debian: pkg-config "
                               f"and {library.replace('-8', '')}-dev)") from None
            words += shlex.split(ran.stdout)
    return before, after


def _cache() -> Path:
    """A folder that only the user may write to, because its files are loaded as code."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "hoist-runtime"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except (OSError, RuntimeError) as problem:
        raise _failure(f"no folder for the compiled runtime: {problem} (XDG_CACHE_HOME names another one)") from None
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise _failure(f"{folder} belongs to another user, or others may write to it, so no library is loaded from there "
                       "(XDG_CACHE_HOME names another one)")
    if not os.access(folder, os.W_OK):
        raise _failure(f"{folder} cannot be written to (XDG_CACHE_HOME names another one)")
    return folder
