"""The pages of tools/pages and the README: they build, their links are valid, their commands print the shown output."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import File, missing, run, steps, update

SOURCE = Path(os.environ["HOIST_SOURCE_DIR"])
PROGRAM = Path(os.environ["HOIST_PROGRAM"])
PAGES = SOURCE / "tools" / "pages"
sys.path.insert(0, str(PAGES))
from links import problems  # noqa: E402

ENVIRONMENT = SOURCE / "build" / "dependencies" / "documentation"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not list(ENVIRONMENT.glob("*.done")):
        pytest.skip("Sphinx is not installed (tools/documentation --install)")
    folder = tmp_path_factory.mktemp("pages")
    ran = subprocess.run([SOURCE / "tools" / "documentation", "--build", PROGRAM.parent, "--output", folder], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert ran.returncode == 0, ran.stdout
    return folder


def test_every_link_leads_somewhere(pages: Path) -> None:
    found, links, _ = problems(pages)
    assert not found
    assert links > 500


def test_lists_are_those_of_the_tables(pages: Path) -> None:
    for page, words in {
        "reference/rules.html": ["map-fusion", "batch-norm-folding", "w8a8", "register-tiles"],
        "reference/operators.html": ["ConvTranspose", "TreeEnsembleClassifier", "Elu"],
        "reference/language.html": ["slide size step dilation", "shift_left", "map2d", "f8e4m3fn"],
        "reference/commands.html": ["--stop-after", "hoist language", "--preferences"],
        "reference/c.html": ["hoist_set_input_pixels", "set_pixels"],
    }.items():
        text = html.unescape(re.sub("<[^>]*>", "", (pages / page).read_text(encoding="utf-8")))
        for word in words:
            assert word in text, (page, word)


def test_pages_need_nothing_of_this_machine(pages: Path) -> None:
    for page in pages.rglob("*.html"):
        assert str(SOURCE) not in page.read_text(encoding="utf-8"), page


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><a href="b.html#not">x</a><a href="c.html">x</a>'
                                     '<a href="../out.html">x</a><script src="https://example.org/x.js"></script>'
                                     '<a href="https://example.org">x</a><a href="#top" id="top">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    found, links, outside = problems(tmp_path)
    assert (links, outside) == (7, 2)
    assert [problem.split(": ")[1].split(" ")[0] for problem in found] == [
        "b.html#not", "c.html", "../out.html", "https://example.org/x.js"]


def test_outputs_are_compared() -> None:
    printed = "a note\n13 kernels agree, 0.2 s\n  last  line\n"
    assert missing(["13 kernels agree, ... s", "...", "last line"], printed) is None
    assert missing(["12 kernels agree, 0.2 s"], printed) == "12 kernels agree, 0.2 s"
    assert missing(["last line", "13 kernels agree, 0.2 s"], printed) == "13 kernels agree, 0.2 s"
    assert missing(["kernels agree"], printed) == "kernels agree"
    assert missing(["... kernels agree, ..."], printed) is None
    page = "```console\n$ one\nout\n$ two\n```\n```{code-block} c\n:caption: a.c\n\nint x;\n```\n"
    one, two, file = steps(page)
    assert (one.text, one.shown, two.text) == ("one", ["out"], "two")
    assert file == File("a.c", "int x;\n")


def test_a_page_that_shows_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, said in (("$ echo 1\ntwo", "shows what is not printed: two"), ("$ false", "ends with 1"),
                       ("$ false | cat", "ends with 1")):
        page.write_text(f"```console\n{text}\n```\n")
        with pytest.raises(AssertionError, match=said):
            run(page, tmp_path, dict(os.environ))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "models").symlink_to(SOURCE / "models")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "hoist").symlink_to(PROGRAM)
    (tools / "python3").symlink_to(sys.executable)  # with numpy
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOIST": str(SOURCE)}


@pytest.mark.parametrize("name", ["README.md", *(f"tools/pages/{name}.md" for name in (
    "tutorial", "compile", "inspect", "accuracy", "own_rules", "contributing"))])
def test_commands_print_what_they_show(name: str, folder: Path, environment: dict[str, str]) -> None:
    assert run(SOURCE / name, folder, environment) > 3


def test_the_architecture_shows_whole_outputs(folder: Path, environment: dict[str, str], tmp_path: Path) -> None:
    page = PAGES / "architecture.md"
    if os.environ.get("HOIST_UPDATE_GOLDEN") == "1":
        update(page, folder, environment)
        folder = tmp_path / "again"
        folder.mkdir()
    assert run(page, folder, environment, exact=True) > 8


def test_an_update_writes_the_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n```console\n$ echo 1; echo 2\nold\n$ echo 3\n```\nb\n")
    update(page, tmp_path, dict(os.environ))
    assert page.read_text() == "a\n```console\n$ echo 1; echo 2\n1\n2\n$ echo 3\n3\n```\nb\n"
    assert run(page, tmp_path, dict(os.environ), exact=True) == 2
    page.write_text("```console\n$ echo 1; echo 2\n2\n```\n")
    with pytest.raises(AssertionError, match="prints something else"):
        run(page, tmp_path, dict(os.environ), exact=True)


def room_of(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "backends" else parts[0]


def test_includes_are_those_of_the_architecture() -> None:
    text = (PAGES / "architecture.md").read_text(encoding="utf-8").split("\n| folder | may include |\n")[1].split("\n\n")[0]
    allowed = {row[0]: set(re.findall("`([^`]+)`", row[1])) for row in re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.M)}
    assert set(allowed) >= {"ir", "frontend", "lowering", "neural_rules", "tools"}
    tops = {room.split("/")[0] for room in allowed}
    for top in tops:
        for path in (SOURCE / top).rglob("*"):
            if path.suffix not in (".h", ".hpp", ".c", ".cpp"):
                continue
            name = path.relative_to(SOURCE).as_posix()
            for included in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M):
                if included.split("/")[0] in tops and room_of(included) != room_of(name):
                    assert room_of(included) in allowed[room_of(name)], (name, included)


def test_folders_of_lowering_include_those_below_them() -> None:
    folders = re.findall(r"^\| `(\w+)/` \|", (SOURCE / "lowering" / "README.md").read_text(encoding="utf-8"), re.M)
    assert set(folders) == {path.name for path in (SOURCE / "lowering").iterdir() if path.is_dir()}
    upwards = [(path.name, name) for path in (SOURCE / "lowering").rglob("*") if path.suffix in (".h", ".cpp")
               for name in re.findall(r'^#include "lowering/(\w+)/', path.read_text(encoding="utf-8"), re.M)
               if folders.index(name) < folders.index(path.parent.name)]
    assert upwards == [("user_rules.cpp", "pipeline")]


def test_performance_is_written_from_results() -> None:
    ran = subprocess.run([sys.executable, SOURCE / "tools" / "compare" / "performance.py", "--check"], text=True,
                         capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


FOLDERS = ("ir", "frontend", "lowering", "neural_rules", "backends", "tools", "models", "tests")


def test_documents_name_existing_files() -> None:
    """Paths in the first columns of README tables, and all paths from the root, exist; capitals such as "NAME" are placeholders."""
    documents = [SOURCE / "README.md", *PAGES.rglob("*.md"), *(path for top in FOLDERS for path in (SOURCE / top).rglob("README.md"))]
    missing_files = []
    for document in documents:
        text = document.read_text(encoding="utf-8")
        if document.name == "README.md":
            for name in re.findall("`([^`]+)`", " ".join(re.findall(r"^\| (`.*?) \|", text, re.M))):
                if not any(document.parent.rglob(name.rstrip("/*") + "*")):
                    missing_files.append((document.relative_to(SOURCE).as_posix(), name))
        for name in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text):
            if not re.search("[A-Z]{4}", name.rsplit("/", 1)[-1].split(".")[0]) and not any(SOURCE.glob(name.rstrip("/*") + "*")):
                missing_files.append((document.relative_to(SOURCE).as_posix(), name))
    assert not missing_files


def test_there_is_one_version() -> None:
    version = re.search(r"^project\(hoist VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
    assert subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1] == version
    assert re.search(r"^## (\S+)", (SOURCE / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1] == version
    assert f"Version {version}" in (SOURCE / "README.md").read_text(encoding="utf-8")
    package = PROGRAM.parent / "CPackConfig.cmake"
    assert not package.exists() or f'set(CPACK_PACKAGE_VERSION "{version}")' in package.read_text()


def test_documents_have_their_size() -> None:
    readme = (SOURCE / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 120 and len(readme.split()) <= 800
    for folder in SOURCE.iterdir():
        for path in folder.rglob("README.md") if folder.name not in ("build", ".git") else ():
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 60, path
    for release in (SOURCE / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        assert len(release.splitlines()) <= 60
    assert len(list((PAGES / "decisions").glob("*.md"))) <= 26  # and their index
