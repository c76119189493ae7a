"""Writes tools/pages/performance.md from the results of measurements.

    python3 tools/compare/performance.py           writes the page from tools/compare/results/*.json
    python3 tools/compare/performance.py --check   exit code 1 if the page is another text

compare.py --json writes files of results. To add a measurement, write such a file into tools/compare/results and run
this script; remove the results of older versions that it replaces.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tools" / "compare" / "results"
PAGE = ROOT / "tools" / "pages" / "performance.md"

HEAD = """# Performance

`tools/compare/performance.py` writes this page from measurements of `tools/compare/peers`, `compare.py blocks` and
`architectures.py --speed`; no other document states times. Outputs are compared with ONNX Runtime's before any time is taken. Times are milliseconds per run. The speed-up is
the time of the fastest other engine divided by hoist's: above 1x hoist is faster.

Measure your model on your machine with `tools/compare/peers MODEL.onnx`; results of other machines are a weak
prediction.
"""


def milliseconds(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def section(report: dict[str, Any]) -> str:
    engines = report["engines"]
    results = report["results"]
    out = f"\n## {report['machine']}, {report['date']}\n\n{report['conditions'][0].upper()}{report['conditions'][1:]}.\n\n"
    columns = ["model", *engines.values(), "hoist", *(["speed-up"] if engines else [])]
    out += "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"
    ratios = []
    for result in results:
        times = result["ms"]
        cells = [result["name"], *(milliseconds(times[name]) if name in times else "-" for name in engines),
                 milliseconds(times["hoist"])]
        others = [times[name] for name in engines if name in times]
        if engines:
            ratio = min(others) / times["hoist"] if others else None
            if ratio:
                ratios.append(ratio)
            cells.append(f"{ratio:.2f}x" if ratio else "-")
        out += "| " + " | ".join(cells) + " |\n"
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        out += f"\nGeometric mean of {len(ratios)} speed-ups: {mean:.2f}x.\n"
    return out


def page(results: Path = RESULTS) -> str:
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"), reverse=True)]
    return HEAD + "".join(section(report) for report in sorted(reports, key=lambda each: each["date"], reverse=True))


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"error: {PAGE.relative_to(ROOT)} is not what its results give: run tools/compare/performance.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
