"""The English of the project: comments, messages, option helps and Markdown, as blocks of text with their places.

A block is one comment, one string literal, one paragraph, one list item or one table cell. Code inside a block (backticks,
paths, identifiers) is replaced by a placeholder, so that names of code are never taken for prose.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]

C_LIKE = {".c", ".cpp", ".h", ".hpp", ".inc", ".js", ".css"}
HASH = {".py", ".sh", ".cmake", ".toml", ".yml"}
ROWS = {".rules", ".op", ".derivatives"}

# The tables of options and commands: their texts are helps, except examples and lists of commands.
HELPS = {"tools/cli/option_table.cpp", "tools/cli/command_table.cpp"}
EXAMPLE = re.compile(r"\s*hoist |[a-z]+ (bisect|check|compile|evaluate|export|inspect|report|run|verify)\b")

# Expected texts, inputs of fuzzers, and generated or foreign files.
EXCLUDED = re.compile(
    r"^(tests/golden/|tests/fuzz/corpus/|tests/conformance/.*\.txt$|CHANGELOG\.md$|LICENSE$|"
    r"ir/operators/COVERAGE\.md$|tools/pages/requirements\.txt$|tools/pages/glossary\.md$|tools/form/|tests/form/)")


@dataclass(frozen=True)
class Block:
    path: str
    line: int
    kind: str  # comment, message, help or page
    text: str


def files(root: Path = ROOT) -> list[str]:
    """Tracked files and new files that git does not ignore, sorted."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def _kind_of(name: str, first: str) -> str:
    path = Path(name)
    if path.suffix in C_LIKE:
        return "c"
    if path.suffix == ".md":
        return "markdown"
    if path.suffix in ROWS:
        return "rows"
    if path.suffix in HASH or path.name == "CMakeLists.txt" or first.startswith("#!"):
        return "hash"
    return ""


CONVERSION = re.compile(r"%(?:\.(?:\d+|\*))?(?:z[ud]|ll?[dux]|[cdfgisux])(?![a-z])")  # of printf
CODE = re.compile(r"``.+?``|`[^`\n]+`")
IDENTIFIER = re.compile(
    r"(?<![\w/])[\w.-]*/[\w./*-]*[\w*]"      # a path
    r"|\b\w+(?:::\w+)+(?:\(\))?"              # a qualified name
    r"|\b\w*[A-Za-z0-9]_\w+(?:\(\))?"         # snake_case, MACRO_CASE
    r"|\b[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b"      # camelCase
    r"|\b[\w-]+\.(?:h|hpp|cpp|c|py|md|txt|json|bin|cl|lift|html|onnx|hoist|cmake)\b"
    r"|--[a-z][\w=-]*")


def plain(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)  # links
    text = CONVERSION.sub("{}", text)
    text = CODE.sub("CODE", text)
    text = IDENTIFIER.sub("CODE", text)
    return re.sub(r"\s+", " ", text).strip()


C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n]){1,4}\'', re.S)


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _c_blocks(name: str, text: str) -> Iterator[Block]:
    is_test = name.startswith("tests/")
    comment: list[str] = []
    comment_line = comment_end = column = -9
    message: list[str] = []
    message_line = message_end = 0
    line, counted = 1, 0

    def close_message() -> Iterator[Block]:
        nonlocal message
        joined, message = "".join(message), []
        is_list = name in HELPS and EXAMPLE.match(joined)
        if joined and not is_test and not is_list and _is_prose(joined):
            yield Block(name, message_line, "help" if name in HELPS else "message", joined)

    for match in C_TOKEN.finditer(text):
        token = match.group()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if token.startswith("//") or token.startswith("/*"):
            at = match.start() - text.rfind("\n", 0, match.start()) - 1
            alone = not text[match.start() - at:match.start()].strip()
            body = re.sub(r"^(///?<?|/\*+)|\*/$", "", token)
            body = "\n".join(re.sub(r"^\s*\* ?", "", each) for each in body.split("\n"))
            if not (comment and alone and line == comment_end + 1 and at == column):
                if comment:
                    yield from _paragraphs(name, comment_line, "comment", "\n".join(comment))
                comment, comment_line, column = [], line, at
            comment.append(body)
            comment_end = line + token.count("\n")
            continue
        if token.startswith("R"):  # text of programs that bundles carry
            for block in _c_blocks(name, match.group(2)):
                if block.kind == "comment":
                    yield replace(block, line=line + block.line - 1)
        if token.startswith('"'):
            gap = text[message_end:match.start()]
            if not (message and not gap.strip()):
                yield from close_message()
                message_line = line
            message.append(token[1:-1].replace(r"\"", '"').replace(r"\n", "\n"))
            message_end = match.end()
    yield from close_message()
    if comment:
        yield from _paragraphs(name, comment_line, "comment", "\n".join(comment))


def _is_prose(literal: str) -> bool:
    """True for messages and helps: four words or more, and none of the signs of code, rules and patterns."""
    literal = CONVERSION.sub("{}", literal)
    if re.search(r";(?! -?-?[a-z][a-z-]*[ ,])|[\\<>\[\]|]|=>|==| = |^\s*--|\w\(\w*\)|::|%\w", literal):
        return False
    return len(re.findall(r"(?<!\S)[A-Za-z][a-z'-]*[,.:]?(?!\S)", literal)) >= 4


def _paragraphs(name: str, line: int, kind: str, text: str) -> Iterator[Block]:
    """Comments: an empty line, a list item and an indented line end a paragraph."""
    part: list[str] = []
    begin = line
    for at, each in enumerate(text.split("\n")):
        stripped = each.strip()
        starts = not stripped or re.match(r"^([-*] |\d+\. |\s{4,})", each) is not None
        if starts and part:
            yield Block(name, begin, kind, " ".join(part))
            part = []
        if stripped and not re.match(r"^\s{4,}\S", each) and not re.match(r"clang-format|NOLINT|[-=]{4,}|#?include [<\"]", stripped):
            if not part:
                begin = line + at
            part.append(re.sub(r"^[-*] ", "", stripped))
    if part:
        yield Block(name, begin, kind, " ".join(part))


def _hash_blocks(name: str, text: str) -> Iterator[Block]:
    comment: list[str] = []
    begin = end = 0
    trailed = False
    lines = text.split("\n")
    if name.endswith(".py"):
        for match in re.finditer(r'^([ \t]*)[rf]?"""(.*?)"""', text, re.S | re.M):
            indent = match.group(1)
            yield from _paragraphs(name, text.count("\n", 0, match.start()) + 1, "comment",
                                   "\n".join(each.removeprefix(indent) for each in match.group(2).split("\n")))
    for at, each in enumerate(lines, 1):
        match = re.match(r"^\s*#(?!!)\s?(.*)$", each) or re.match(r"^[^\"'#]*\s{2}#\s(.*)$", each)
        if match and not match.group(1).startswith(("noqa", "type:")):
            trails = each.lstrip()[:1] != "#"
            if comment and (at != end + 1 or trails or trailed):
                yield from _paragraphs(name, begin, "comment", "\n".join(comment))
                comment = []
            if not comment:
                begin = at
            comment.append(match.group(1))
            end, trailed = at, trails
    if comment:
        yield from _paragraphs(name, begin, "comment", "\n".join(comment))


def _python_messages(name: str, text: str) -> Iterator[Block]:
    """String literals that are no docstrings, f-strings with their values as {}."""
    tree = ast.parse(text)
    parts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(value) for value in node.values)
            literal = "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            literal = node.value
        else:
            continue
        if _is_prose(literal):
            yield Block(name, node.lineno, "message", literal)


def _row_blocks(name: str, text: str) -> Iterator[Block]:
    """Rules and operators as text: comments after `--`, quoted sentences, the sentence of each rule, lets and reasons."""
    comment: list[str] = []
    begin = 0
    lines = [*text.split("\n"), ""]
    for at, each in enumerate(lines, 1):
        match = re.search(r"(?:^|\s)-- ?(.*)$", each)
        alone = each.startswith("--")
        if comment and not alone:
            yield from _paragraphs(name, begin, "comment", "\n".join(comment))
            comment = []
        if match and alone:
            begin = begin if comment else at
            comment.append(match.group(1))
            continue
        if match:
            yield Block(name, at, "comment", match.group(1))
        for literal in re.findall(r'"((?:\\.|[^"\\])*)"', each):
            if _is_prose(literal):
                yield Block(name, at, "message", literal)
        said = re.match(r"(?:rule \S+ [^:]*:|  meaning)(?: (.*))?$", each)
        if said:
            more = itertools.takewhile(lambda line: line.startswith("    "), lines[at:])
            yield Block(name, at, "message", " ".join([said.group(1) or "", *more] if "meaning" in each else [said.group(1)]))
        reason = re.match(r"(?:let \w+(?:\([^)]*\))? =|  library) (.*)$", each)
        if reason:
            more = itertools.takewhile(lambda line: line.startswith("  "), lines[at:] if each.startswith("let") else [])
            text = re.sub(r"\$\w+(?:\([^)]*\))?|\$\(\w+\)\w*", "{}", " ".join([reason.group(1), *more]))
            if _is_prose(text) and not re.search(r" [*+] | : |\bgiven\(|^map \(", text):
                yield Block(name, at, "message", text)


def _markdown_blocks(name: str, text: str) -> Iterator[Block]:
    part: list[str] = []
    begin = 0
    fence = ""

    def close() -> Iterator[Block]:
        nonlocal part
        if part:
            yield Block(name, begin, "page", " ".join(part))
        part = []

    in_list = False
    for at, each in enumerate(text.split("\n"), 1):
        stripped = each.strip()
        ticks = re.match(r"^\s*(`{3,}|:{3,})", each)
        if ticks and (not fence or stripped.startswith(fence)):
            yield from close()
            fence = "" if fence else ticks.group(1)
            continue
        if fence:
            continue
        item = re.match(r"^(\s*)([-*]|\d+\.) +(.*)$", each)
        if not stripped:
            yield from close()
            in_list = in_list and bool(re.match(r"^\s", each))
        elif stripped.startswith("|"):
            yield from close()
            for cell in re.split(r"(?<!\\)\|", stripped.strip("|")):
                if len(cell.split()) >= 3:
                    yield Block(name, at, "page", cell.strip())
        elif stripped.startswith("#"):
            yield from close()
            yield Block(name, at, "page", stripped.lstrip("# "))
        elif item:
            yield from close()
            in_list, begin, part = True, at, [item.group(3)]
        elif each.startswith("    ") and not part and not in_list:
            continue
        else:
            if not part:
                begin = at
            part.append(stripped)
    yield from close()


def blocks(root: Path = ROOT, names: list[str] | None = None) -> Iterator[Block]:
    for name in files(root) if names is None else names:
        if EXCLUDED.match(name):
            continue
        path = root / name
        suffix = path.suffix
        if suffix not in C_LIKE | HASH | ROWS | {".md", ""} and path.name != "CMakeLists.txt":
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        kind = _kind_of(name, text[:2])
        reader = {"c": _c_blocks, "hash": _hash_blocks, "markdown": _markdown_blocks, "rows": _row_blocks}.get(kind)
        if reader:
            yield from reader(name, text)
        if not name.startswith("tests/") and (suffix == ".py" or re.match(r"#!.*python", text)):
            yield from _python_messages(name, text)


SENTENCE_END = re.compile(r"(?<![.\s]\w)(?<!e\.g)(?<!i\.e)(?<!etc)[.!?](?:\*\*)?\s+(?=[\"'(*A-Z`])")


def sentences(block: Block) -> list[str]:
    """The sentences of a block, with code replaced."""
    text, out, begin = plain(block.text), [], 0
    for match in SENTENCE_END.finditer(text):
        out.append(text[begin:match.end()].strip())
        begin = match.end()
    out.append(text[begin:].strip())
    return [each for each in out if each]
