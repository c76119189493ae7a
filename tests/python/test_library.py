"""The search for the runtime, and the installed package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import LIBRARY, SOURCE

import hoist_runtime
from hoist_runtime import Error, Status

VARIABLE = "HOIST_RUNTIME_LIBRARY"


def in_process(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Libraries are loaded once per process, so this test needs a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


OPEN = """
import hoist_runtime, sys
with hoist_runtime.open({!r}) as bundle:
    bundle.seed_inputs(1)
    print(bundle.run()[0].shape, bundle._library._name)
"""


def test_a_library_that_is_named(monkeypatch: pytest.MonkeyPatch, digits: Path, tmp_path: Path) -> None:
    for content in (None, b"no library"):
        path = tmp_path / "library.so"
        if content is not None:
            path.write_bytes(content)
        monkeypatch.setenv(VARIABLE, str(path))
        with pytest.raises(Error, match=f"{VARIABLE} names .*library.so, which cannot be loaded") as raised:
            hoist_runtime.open(digits)
        assert raised.value.status is Status.NO_LIBRARY
    monkeypatch.setenv(VARIABLE, "libc.so.6")
    with pytest.raises(Error, match="libc.so.6 is not a runtime"):
        hoist_runtime.open(digits)


def test_one_that_is_installed_beside_the_program(digits: Path, tmp_path: Path) -> None:
    for folder in ("bin", "lib"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "bin" / "hoist"
    program.write_text("")
    program.chmod(0o755)
    shutil.copy(LIBRARY, tmp_path / "lib" / LIBRARY.name)
    ran = in_process(OPEN.format(str(digits)), PATH=f"{program.parent}:{os.environ['PATH']}", **{VARIABLE: ""})
    assert ran.returncode == 0, ran.stderr
    # A library installed for the whole system has precedence.
    assert f"(1, 10) {tmp_path}/lib/{LIBRARY.name}" in ran.stdout or f"(1, 10) {LIBRARY.name}" in ran.stdout


@pytest.mark.parametrize("name", ["digits.hoist", "sizes.hoist", "text.hoist"])
def test_the_bundle_s_own(bundles: Path, tmp_path: Path, name: str) -> None:
    environment = {VARIABLE: "bundle", "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):
        ran = in_process(OPEN.format(str(bundles / name)), **environment)
        assert ran.returncode == 0, ran.stderr
        made = list((tmp_path / "hoist-runtime").iterdir())
        assert len(made) == 1 and str(made[0]) in ran.stdout, "made once, and nothing else stays"
        environment["CC"] = ""
    # Another compiler makes another library, and a failing compiler leaves none.
    ran = in_process(OPEN.format(str(bundles / name)), **{**environment, "CC": "false"})
    assert "false does not compile the bundle's runtime (on Debian: gcc" in ran.stderr
    ran = in_process(OPEN.format(str(bundles / name)), **{**environment, "CC": "no-such-compiler"})
    assert "no-such-compiler cannot be started" in ran.stderr
    assert list((tmp_path / "hoist-runtime").iterdir()) == made


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, digits: Path, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "bundle")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(Error, match="there is no C compiler .* install hoist or a compiler, or set HOIST") as raised:
        hoist_runtime.open(digits)
    assert raised.value.status is Status.NO_LIBRARY


def test_cache_that_others_may_write_to(monkeypatch: pytest.MonkeyPatch, digits: Path, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "bundle")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "hoist-runtime").mkdir()
    (tmp_path / "hoist-runtime").chmod(0o777)
    with pytest.raises(Error, match="others may write to it"):
        hoist_runtime.open(digits)


def test_no_bundle_to_take_it_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "bundle")
    with pytest.raises(Error, match="is not a bundle, or is incomplete") as raised:
        hoist_runtime.open(tmp_path)
    assert raised.value.status is Status.BAD_BUNDLE
    with pytest.raises(Error, match="install hoist, or set"):
        hoist_runtime.devices()


def test_the_statuses_and_the_version_are_the_header_s() -> None:
    header = (SOURCE / "backends" / "runtime" / "hoist_runtime.h").read_text()
    for status in Status:
        if status is not Status.NO_LIBRARY:
            assert f"HOIST_{status.name} = {int(status)}" in header
    assert header.count("  HOIST_") == len(Status) - 1
    from hoist_runtime import _c
    assert f"#define HOIST_API_VERSION {_c.API_VERSION}\n" in header


def test_small_types_are_packed_as_the_runtime_has_them() -> None:
    from hoist_runtime import _scalars
    rows = (SOURCE / "backends" / "runtime" / "plan" / "values.c").read_text().split("scalar_rows[HOIST_SCALAR_COUNT] = {")[1]
    names = re.findall(r'{"(\w+)"', rows.split("\n};")[0])
    assert set(names) == {"string", *_scalars._SMALL, *_scalars._NUMPY}
    for scalar in list(_scalars._SMALL) + list(_scalars._NUMPY):
        kind = _scalars.element_type(scalar)
        for count in (0, 1, 5, 24):
            codes = (np.arange(count * 8, dtype=np.uint64) * 37 % 251).astype(np.uint8)
            held = codes[: -(-count * kind.bits // 8)].copy()
            if scalar == "bool":
                held &= 1
            if count * kind.bits % 8:
                held[-1] &= 2 ** (count * kind.bits % 8) - 1
            array = kind.unpacked(held, (count, 1))
            assert array.dtype == kind.dtype and array.shape == (count, 1)
            assert kind.packed(array).tobytes() == held.tobytes(), scalar
            if scalar == "i4" and count and not kind.reason:
                assert array.astype(np.int32).min() >= -8 and array.astype(np.int32)[0, 0] == 0
    raw = _scalars.element_type("bf16")
    assert raw.reason == "" or (raw.dtype == np.uint16 and "ml_dtypes" in raw.reason)
    assert raw.dtype.newbyteorder("=") == raw.dtype


def test_the_wheel(digits: Path, tmp_path: Path) -> None:
    for module in ("pip", "setuptools", "wheel"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no {module}")
    # pip writes into the source folder.
    (tmp_path / "tools").mkdir()
    shutil.copy(SOURCE / "CMakeLists.txt", tmp_path)
    shutil.copytree(SOURCE / "tools" / "python", tmp_path / "tools" / "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    for words in (["wheel", "-w", str(tmp_path), "--no-deps", "--no-build-isolation", "--no-index",
                   str(tmp_path / "tools" / "python")],
                  ["install", "--no-deps", "--no-index", "--find-links", str(tmp_path), "--target",
                   str(tmp_path / "installed"), "hoist-runtime"]):
        ran = subprocess.run(pip + words, capture_output=True, text=True, check=False, cwd=tmp_path,
                             env={**os.environ, "PYTHONPATH": ""})
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "installed" / "hoist_runtime" / "py.typed").exists()
    version = (SOURCE / "CMakeLists.txt").read_text().split("project(hoist VERSION ")[1].split()[0]
    ran = in_process("import hoist_runtime\nprint(hoist_runtime.__version__, hoist_runtime.__file__)\n"
                     + OPEN.format(str(digits)), PYTHONPATH=str(tmp_path / "installed"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"{version} {tmp_path / 'installed'}") and "(1, 10)" in ran.stdout


def test_the_examples_of_the_documentation(digits: Path) -> None:
    fenced = re.findall(r"^```python\n(.*?)^```", (SOURCE / "tools" / "pages" / "python.md").read_text(), re.M | re.S)
    assert len(fenced) == 2
    [block] = re.findall(r"^```python\n(.*?)^```", (SOURCE / "README.md").read_text(), re.M | re.S)
    for program in ("".join(fenced), "import numpy as np\nimage = np.zeros((1, 1, 8, 8))\n" + block):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=digits.parent)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout
