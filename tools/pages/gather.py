"""Collects the sources of all pages in one folder: pages of this folder, documents of other folders, and tables that the
program prints.

    gather.py HOIST ROOT FOLDER
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

# Each becomes a page.
DOCUMENTS = {
    "reference/json.md": "tools/json.md",
    "reference/numerics.md": "ir/operators/NUMERICS.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
# Sections that pages include: the file, the first heading, and the heading after the section.
SECTIONS = {
    "included/start.md": ("README.md", "## Install", "## Quick start"),
}
FILES = ["backends/runtime/hoist_runtime.h", "backends/runtime/hoist_runtime.hpp"]


class Program:
    """The built hoist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, *words: str) -> str:
        return subprocess.run([self.path, *words], check=True, capture_output=True, text=True).stdout

    def answer(self, *words: str) -> Any:
        return json.loads(self.text(*words, "--json", "-"))


def code(text: str) -> str:
    """Code inside a line."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def plain(text: str) -> str:
    """Text with all characters escaped that have a meaning in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$^])", r"\\\1", text)


def table(header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"

    return line(header) + line(["---"] * len(header)) + "".join(line(row) for row in rows) + "\n"


def block(text: str) -> str:
    return f"```{{code-block}} none\n:class: formula\n\n{text.rstrip()}\n```\n\n"


def language(hoist: Program) -> str:
    words = hoist.answer("language")
    out = "## Patterns\n\nA *view* moves no data: it rewrites indices.\n\n"
    out += table(["pattern", "type", "meaning"],
                 [[code(each["name"]), code(each["type"]), plain(each["meaning"]) + (" (view)" if each["view"] else "")]
                  for each in words["patterns"]])
    out += ("## Scalar functions\n\n`ulp` is the largest error on f32 that OpenCL allows, 0 where the result is the nearest float.\n\n")
    out += table(["function", "symbol", "of", "on", "ulp", "meaning"],
                 [[code(each["name"]), code(each["symbol"]), str(each["arguments"]), each["types"], str(each["ulp"]),
                   plain(each["meaning"])] for each in words["functions"]])
    out += "## Named compositions\n\nThe printer uses a name wherever a term equals its definition.\n\n"
    out += table(["name", "of", "is", "meaning"],
                 [[code(each["name"]), code(each["given"]), code(each["definition"]), plain(each["meaning"])]
                  for each in words["definitions"]])
    out += "## Scalar types\n\n"
    out += table(["type", "bits", "float", "signed"],
                 [[code(each["name"]), str(each["bits"]), "yes" if each["float"] else "", "yes" if each["signed"] else ""]
                  for each in words["scalars"]])
    return out


def rules(hoist: Program) -> str:
    everything = hoist.answer("rules")
    neural = [each for each in everything if "family" in each]
    terms = [each for each in everything if "library" in each]
    between = [each for each in everything if "family" not in each and "library" not in each]
    out = f"## Rules between operator calls\n\n{len(between)} rules.\n\n"
    for group, title in ((between, ""), (terms, "Rules of expressions")):
        if title:
            out += f"## {title}\n\n{len(group)} rules.\n\n"
        for each in group:
            out += f"### {plain(each['name'])}\n\n*{each['class']}*: {plain(each['meaning'])}\n\n"
            where = f"\n    where {each['where']}" if each["where"] else ""
            out += block(f"  {each['left']}\n= {each['right']}{where}")
    out += f"## Rules that change values\n\n{len(neural)} rules; a budget chooses among them.\n\n"
    out += table(["rule", "family", "at", "error", "calibrated", "meaning"],
                 [[code(each["name"]), plain(each["family"]), plain(each["site"]), plain(each["error"]),
                   "yes" if each["calibrated"] else "", plain(each["meaning"])] for each in neural])
    strategies = hoist.answer("rules", "--strategies")
    out += "## Strategies\n\nA strategy maps the loops of a kernel to the device; `--steps` of `hoist compile` may name one.\n\n"
    out += table(["strategy", "meaning"], [[code(each["name"]), plain(each["meaning"])] for each in strategies])
    return out


def operators(hoist: Program) -> str:
    everything = hoist.answer("operators")
    by_domain: dict[str, list[Any]] = {}
    for each in everything:
        by_domain.setdefault(each["domain"] or "ai.onnx", []).append(each)
    out = ""
    for domain, group in by_domain.items():
        out += f"## {plain(domain)}\n\n"
        out += table(["operator", "versions", "types", "how", "ONNX cases", "passing"],
                     [[code(each["name"]), " ".join(map(str, each["versions"])), plain(each["types"]), plain(each["how"]),
                       str(each["cases"] or ""), str(each["passing"]) if each["cases"] else ""] for each in group])
    out += "## Definitions\n\nThe definitions that are texts of the language, as the compiler reads them.\n\n"
    for each in everything:
        if each.get("definition"):
            name = each["name"] if each["domain"] in ("", "ai.onnx") else f"{each['domain']}.{each['name']}"
            out += f"### {plain(name)} (since {each['since']})\n\n" + block(each["definition"])
    return out


def commands(hoist: Program) -> str:
    out = ""
    for each in hoist.answer("manual")["commands"]:
        out += f"## hoist {plain(each['name'])}\n\n{plain(each['meaning'])}\n\n"
        if each.get("example"):
            out += block("\n".join(line[2:] if line.startswith("  ") else line for line in each["example"].splitlines()))
        rows = []
        for given in [*each["arguments"], *each["options"]]:
            names = given["names"]
            name = ", ".join(names) if isinstance(names, list) else str(names)
            value = f" {given['value']}" if given.get("value") else ""
            said = plain(given["meaning"])
            if given.get("choices"):
                said += "; one of " + ", ".join(code(str(choice)) for choice in given["choices"])
            if given.get("default") not in (None, "", False):
                said += f" (default {code(str(given['default']))})"
            rows.append([code(name + value), said])
        out += table(["", ""], rows)
    return out


def section_of(text: str, first: str, end: str) -> str:
    """Headings are one level lower than before, except the first one."""
    begin = text.index(first + "\n") + len(first) + 1
    return text[begin:text.index(end + "\n", begin)].strip() + "\n"


def main() -> None:
    hoist, root, folder = Program(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])
    shutil.copytree(Path(__file__).parent, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, source in DOCUMENTS.items():
        shutil.copy(root / source, folder / name)
    (folder / "included").mkdir()
    for name, (source, first, end) in SECTIONS.items():
        (folder / name).write_text(section_of((root / source).read_text(encoding="utf-8"), first, end), encoding="utf-8")
    for source in FILES:
        shutil.copy(root / source, folder / "included")
    (folder / "VERSION").write_text(hoist.text("--version").split()[-1] + "\n", encoding="utf-8")
    for name, made in (("language", language), ("rules", rules), ("operators", operators), ("commands", commands)):
        (folder / "included" / f"list_of_{name}.md").write_text(made(hoist), encoding="utf-8")


if __name__ == "__main__":
    main()
