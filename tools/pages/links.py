"""Checks that every link of a folder of pages leads to an existing file and to an existing anchor.

    links.py FOLDER

Prints the broken links and ends with 1 if there are any. Addresses of other hosts are counted and not followed. A page
that needs a script, style or image from another host is an error, because pages are read from disk.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Page(HTMLParser):
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "href" in given and given.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.needed.append(given["href"])
        elif "src" in given:
            self.needed.append(given["src"])


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(folder: Path) -> tuple[list[str], int, int]:
    """The broken links, the number of links, and the number of links to other hosts."""
    folder = folder.resolve()
    pages = {path: read(path) for path in sorted(folder.rglob("*.html"))}
    found, links, outside = [], 0, 0
    if not pages:
        return [f"{folder}: there are no pages"], 0, 0
    for path, page in pages.items():
        where = path.relative_to(folder)
        for link, is_needed in [*((link, False) for link in page.links), *((link, True) for link in page.needed)]:
            links += 1
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                outside += 1
                if is_needed or parts.scheme not in ("http", "https", "mailto"):
                    found.append(f"{where}: {link} is not on this disk")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_relative_to(folder) or not target.is_file():
                found.append(f"{where}: {link} leads to no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: {link} leads to no part of its page")
    return found, links, outside


def main() -> int:
    found, links, outside = problems(Path(sys.argv[1]))
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{links} links, {len(found)} of them broken, {outside} to other hosts (not followed)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
