"""The scripts of tools/form: the prose check, its allowance, the limits of size, the form of commits, and the sample."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(os.environ["HOIST_SOURCE_DIR"])
FORM = SOURCE / "tools" / "form"
sys.path.insert(0, str(FORM))


def script(name: str) -> ModuleType:
    loader = SourceFileLoader(f"form_{name}", str(FORM / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


prose = script("prose")
sentences = sys.modules["sentences"]
commits = script("commits")
limits = script("limits")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the glossary and no text."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "tools" / "pages").mkdir(parents=True)
    (tmp_path / "tools" / "form").mkdir()
    (tmp_path / "ir").mkdir()
    shutil.copy(SOURCE / prose.GLOSSARY, tmp_path / prose.GLOSSARY)
    return tmp_path


def found(tree: Path, name: str, text: str) -> list[str]:
    (tree / name).write_text(text, encoding="utf-8")
    return [finding.reason.split(":")[0] for finding in prose.findings(tree) if finding.path == name]


@pytest.mark.parametrize("name, text, reasons", [
    ("ir/a.cpp", "// Whether both arrays overlap.\n", ["a sentence begins with Whether"]),
    ("ir/a.cpp", "// The sum.\n// Of packed columns the last\n// vector is masked.\n", ["a sentence begins with Of"]),
    ("ir/a.cpp", "/// An extent that data decide.\n", ["data decide"]),
    ("ir/a.cpp", "int x;  // what its names are\n", ["a fragment begins with what"]),
    ("ir/a.cpp", "// The loop takes 0.79 of the time.\n", ["a ratio as prose"]),
    ("ir/a.cpp", "// The kernel asks for weights.\n", ["personification"]),
    ("ir/a.cpp", 'fail("nobody reads the value " + name);\n', ["nobody"]),
    ("ir/a.cpp", 'row("the elements that stand in rows; a function, since data decide");\n', ["data decide", "stand"]),
    ("ir/a.c", 'fail("input %s: nobody reads %zu of %.60s");\n', ["nobody"]),
    ("ir/a.py", '"""Of those the first."""\n', ["a sentence begins with Of"]),
    ("ir/a.py", 'raise ValueError(f"{path}: nobody reads the value {name}")\n', ["nobody"]),
    ("ir/a.sh", "#!/bin/sh\n# Those that fail are listed.\n", ["Those that"]),
    ("ir/a.py", "a = 1  # the first\nb = 2  # what follows it\n", ["a fragment begins with what"]),
    ("ir/a.md", "The last vector *sticks\nout* of the row.\n", ["sticks out"]),
    ("ir/a.md", "- **What is trusted**: the plan.\n", ["a sentence begins with What"]),
    ("ir/a.md", "Who prefers Python reads this.\n", ["a sentence begins with Who"]),
    ("ir/a.rules", "rule a exact: what nobody reads goes\n  a => b\n", ["nobody", "a fragment begins with what"]),
    ("ir/a.rules", "-- The sum.\n-- Of packed columns the last.\n", ["a sentence begins with Of"]),
    ("ir/a.rules", "let reason = sums that nobody\n  reads in $order, $(n)x$m\nrule a exact\n  library $reason\n", ["nobody"]),
    ("ir/a.rules", "rule a exact\n  says \"the values that nobody reads go\"\n", ["nobody"]),
])
def test_a_sentence_that_must_be_found(tree: Path, name: str, text: str, reasons: list[str]) -> None:
    assert found(tree, name, text) == reasons


@pytest.mark.parametrize("name, text", [
    ("ir/a.cpp", "// True if both arrays overlap. The rest of them is a view.\n"),
    ("ir/a.cpp", "// Calls `nobody` of lowering/nobody/beside.h and keep_data_decide().\n"),
    ("ir/a.cpp", 'const char* term = "map nobody >> [n] stands beside";\n'),
    ("ir/a.cpp", "// AMX stands for advanced matrix extensions; most of the time it is there; 1 % of the time limit is left.\n"),
    ("ir/a.cpp", 'emit("int nobody = 0; int beside = 1; return stands beside;");\n'),
    ("ir/a.rules", "-- The rule replaces\n-- what follows.\n"),
    ("ir/a.md", "# What became of my layer?\n\n```\nOf code nobody reads.\n```\n\n    Of indented code\n"),
    ("tests/golden/a.md", "Nobody reads what stands here.\n"),
])
def test_a_sentence_that_must_not_be_found(tree: Path, name: str, text: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    assert found(tree, name, text) == []


def test_the_allowance_only_falls(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two, one, none = "// Nobody, nobody.\n", "// Nobody.\n", "// No one.\n"
    source = tree / "ir" / "a.cpp"
    source.write_text(one)
    assert prose.main([], tree) == 1  # no allowance yet
    assert prose.main(["--write"], tree) == 0
    assert prose.ALLOWANCE.read(tree) == {"ir": 1}
    assert prose.main([], tree) == 0

    source.write_text(two)
    assert prose.main([], tree) == 1
    assert "ir: 2 findings, 1 allowed" in capsys.readouterr().err
    assert prose.main(["--write"], tree) == 1  # a rise is refused
    assert prose.ALLOWANCE.read(tree) == {"ir": 1}

    source.write_text(none)
    assert prose.main([], tree) == 1  # the number has to be lowered
    assert prose.main(["--write"], tree) == 0
    assert prose.main([], tree) == 0
    assert prose.ALLOWANCE.read(tree) == {}


def test_files_may_move_between_folders(tree: Path) -> None:
    (tree / "ir" / "a.cpp").write_text("// Nobody.\n")
    assert prose.main(["--write"], tree) == 0
    (tree / "ir" / "text").mkdir()
    (tree / "ir" / "a.cpp").rename(tree / "ir" / "text" / "a.cpp")
    assert prose.main([], tree) == 1
    assert prose.main(["--write"], tree) == 0
    assert prose.ALLOWANCE.read(tree) == {"ir/text": 1}


def many(count: int, line: str) -> str:
    return "".join(line.format(each) for each in range(count))


STATEMENTS = many(79, "  f({});\n")


@pytest.mark.parametrize("name, text, reasons", [
    ("a.cpp", many(501, "int a{};\n"), ["a file of 501 lines"]),
    ("a.cpp", many(500, "int a{};\n// A comment.\n\n/* One\n of two lines. */\n"), []),
    ("a.cpp", "void f() {{\n{}}}\n".format(STATEMENTS), ["f has 81 lines"]),
    ("a.cpp", "void f() {{\n{}}}\n".format(STATEMENTS.replace("f(3);", "// f(3);")), []),
    ("a.cpp", "A::A(int x)\n    : a_(x), b_{{x}} {{\n{}}}\n".format(STATEMENTS), ["A::A has 82 lines"]),
    ("a.h", "class A {{\n  int f() const {{\n{}  }}\n}};\n".format(STATEMENTS), ["f has 81 lines"]),
    ("a.c", "const row rows[] = {{\n{}}};\n".format(many(600, "    {{{{{}, 0}}}},\n")), []),
    ("a.cpp", "Rows rows() {{\n  return {{\n{}  }};\n}}\n".format(many(90, "      row({}),\n")), []),
    ("a.cpp", "auto f = Table{{\n    [] {{\n{}    }},\n}};\n".format(many(501, "      f({});\n")), ["a file of 503 lines"]),
    ("a.py", many(501, "a{} = 0\n"), ["a file of 501 lines"]),
    ("a.py", '"""One\n{}"""\n# A comment.\n{}'.format(many(300, "line {}\n"), many(500, "a{} = 0\n")), []),
    ("a.py", "def f() -> None:\n{}".format(many(80, "    g({})\n")), ["f has 81 lines"]),
    ("a.py", "def f() -> list[int]:\n    return [\n{}    ]\n".format(many(90, "        {},\n")), []),
    ("a.md", many(600, "{}\n"), []),
])
def test_limits_of_files_and_functions(tree: Path, name: str, text: str, reasons: list[str]) -> None:
    (tree / "ir" / name).write_text(text)
    assert [finding.reason.split(" of code")[0] for finding in limits.findings(tree)] == reasons


def test_limits_of_folders(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in range(26):
        (tree / "ir" / f"a{each}.h").write_text("")
    assert limits.main([], tree) == 1
    assert limits.main(["--write"], tree) == 0
    assert limits.ALLOWANCE.read(tree) == {"ir": 1}
    assert limits.main(["--list", "ir"], tree) == 0
    assert "ir/:1: a folder of 26 files, at most 25 are allowed" in capsys.readouterr().out


@pytest.mark.parametrize("message, part", [
    ("Add a check of prose", None),
    ("Merge branch 'rules'", None),
    ("Address two findings\n\nThe reason.\n", None),
    ("Pass options by value\n# a comment of git's\n", None),
    ("Added a check", "no imperative"),
    ("Adds a check", "no imperative"),
    ("Pictures are reduced by planes", "no imperative"),
    ("The check", "no imperative"),
    ("add a check", "capitalised"),
    ("Add a check.", "full stop"),
    ("Add " + "x" * 69, "73 characters"),
    ("Add a check\nof prose", "second line"),
    ("\n", "no subject"),
])
def test_messages_of_commits(message: str, part: str | None, tmp_path: Path) -> None:
    faults = commits.faults(message)
    assert (not faults) if part is None else any(part in fault for fault in faults), faults
    file = tmp_path / "message"
    file.write_text(message)
    hook = subprocess.run([SOURCE / "tools" / "scripts" / "commit-msg", file], capture_output=True, check=False)
    assert hook.returncode == (0 if part is None else 1)


def test_the_sample_follows_from_its_seed() -> None:
    if not (SOURCE / ".git").exists():
        pytest.skip("not a clone")

    def lines(seed: int) -> list[str]:
        return subprocess.run([FORM / "sample", "--seed", str(seed)], check=True, capture_output=True,
                              text=True).stdout.splitlines()

    assert lines(3) == lines(3) != lines(4)
    assert 2 * 120 < len(lines(3)) <= 2 * 160  # commits are few after a clone with a short history


@pytest.mark.parametrize("name, text, blocks", [
    ("tools/cli/command_table.cpp", '{"help", "print the options of a command", "  hoist help compile"}',
     [("help", "print the options of a command")]),
    ("ir/a.cpp", 'fail("the file has no end");', [("message", "the file has no end")]),
    ("ir/a.cpp", "// Rules\n// include this case.\n", [("comment", "Rules include this case.")]),
    ("ir/a.cpp", '// clang-format off\n// #include "ir/b.h"\n', []),
    ("ir/a.cpp", 'text = R"(\n// The sum of all rows.\nint a; /* one of them */\n)";',
     [("comment", "The sum of all rows."), ("comment", "one of them")]),
])
def test_kinds_of_blocks(tree: Path, name: str, text: str, blocks: list[tuple[str, str]]) -> None:
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text(text)
    assert [(block.kind, block.text) for block in sentences.blocks(tree, [name])] == blocks


def test_the_glossary_is_sorted() -> None:
    section = (SOURCE / prose.GLOSSARY).read_text(encoding="utf-8").split("\n## Terms\n")[1].split("\n## ")[0]
    terms = [line.split(" | ")[0].removeprefix("| ").lower() for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(terms) > 50
    assert terms == sorted(terms)
