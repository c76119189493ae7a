"""The package as pip installs it, and the examples of its documentation."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, DEPENDENCIES, DIGITS, ENVIRONMENT, MODELS, SOURCE

import hoist

USE = """
import hoist, sys
import numpy as np
assert hoist.__file__.startswith(sys.prefix), hoist.__file__
model = hoist.load(sys.argv[1])
bundle = model.compile("digits.hoist", target="native")
[name] = [array.name for array in bundle.summary.inputs]
print(hoist.__version__, bundle.run({name: np.zeros(bundle.summary.inputs[0].shape, np.float32)})[0].shape)
"""


def ran(*words: object, folder: Path, **environment: str) -> str:
    out = subprocess.run([str(word) for word in words], cwd=folder, env={**os.environ, **environment}, text=True,
                         capture_output=True, check=False)
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def test_the_wheel_in_a_fresh_environment(tmp_path: Path) -> None:
    if BUILD != SOURCE / "build" / "release":
        pytest.skip("the wheel is made of build/release")
    # Debian's interpreter alone: its headers are there, and numpy.
    pip = DEPENDENCIES.parents[2] / "bin" / "pip"
    alone = {"PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"}
    ran(pip, "--no-cache-dir", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, SOURCE,
        folder=tmp_path, **alone)
    [wheel] = tmp_path.glob("hoist-*.whl")
    ran(sys.executable, "-m", "venv", "--system-site-packages", "environment", folder=tmp_path, **alone)
    python = tmp_path / "environment" / "bin" / "python"
    ran(python, "-m", "pip", "install", "--no-deps", wheel, folder=tmp_path, **alone)
    # The dependencies that pip would fetch, except numpy.
    [packages] = (tmp_path / "environment" / "lib").glob("python3*/site-packages")
    (packages / "halide").symlink_to(DEPENDENCIES / "halide")
    version = (SOURCE / "CMakeLists.txt").read_text().split("project(hoist VERSION ")[1].split()[0]
    assert ran(python, "-c", USE, DIGITS, folder=tmp_path, **alone).splitlines()[-1] == f"{version} (1, 10)"
    shown = ran(python, "-m", "pip", "show", "hoist", folder=tmp_path, **alone)
    assert f"Version: {version}" in shown and "halide" in shown
    assert (packages / "hoist" / "py.typed").exists() and (packages / "hoist" / "_core.pyi").exists()


def test_versions_are_said_once() -> None:
    wanted = re.findall(r'"(halide==[^"]+)"', (SOURCE / "pyproject.toml").read_text())
    pinned = (SOURCE / "tools" / "requirements.txt").read_text()
    for package in (*wanted, *re.findall(r'^requires = \["([^"]+)"\]', (SOURCE / "pyproject.toml").read_text(), re.M)):
        assert f"\n{package} " in pinned, package
    assert wanted


def test_the_stub_has_what_the_extension_has() -> None:
    from hoist import _core

    stub = (Path(hoist.__file__).parent / "_core.pyi").read_text()
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert public == set(re.findall(r"^(?:class |def )?(\w+)[(:]", stub, re.M)) - {"from"}
    methods = {name for name in vars(_core.Model) if not name.startswith("_")}
    assert methods == set(re.findall(r"^    def ([a-z]\w*)", stub, re.M))


def test_the_examples_of_the_readmes(tmp_path: Path) -> None:
    package = (SOURCE / "tools" / "python" / "hoist" / "README.md").read_text()
    [readme] = re.findall(r"^```python\n(.*?)^```", package, re.M | re.S)
    manual = (SOURCE / "tools" / "pages" / "python_compiler.md").read_text()
    fenced = re.findall(r"^```python\n(.*?)^```", manual, re.M | re.S)
    assert len(fenced) >= 2
    for program in (readme, "".join(fenced)):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "models").symlink_to(MODELS)
        assert ran(sys.executable, "-c", program, folder=folder, **{"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]})


def test_the_page_of_the_documentation() -> None:
    page = (SOURCE / "tools" / "pages" / "notebook.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) > 4
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    names = {"HOIST": str(SOURCE)}
    said: list[str] = []
    for number, block in enumerate(blocks):
        test = doctest.DocTestParser().get_doctest(block, names, f"block {number}", "notebook.md", 0)
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    assert runner.tries > 20 and not runner.failures, "".join(said)
