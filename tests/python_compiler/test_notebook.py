"""The page tools/pages/notebook.md as a notebook, in a Jupyter kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, SOURCE

#: Runs a notebook and writes it with the output of its cells; a separate process, as Jupyter's packages warn of each other.
EXECUTE = """
import sys
import nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3", allow_errors=True).execute()
nbformat.write(notebook, sys.argv[2])
"""


def cells(page: str) -> list[str]:
    """The code of each block, without prompts and without what it prints."""
    out = []
    for block in re.findall(r"^```pycon\n(.*?)^```", page, re.M | re.S):
        lines = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
        out.append("\n".join(lines))
    return out


def test_the_page_in_jupyter(tmp_path: Path) -> None:
    for module in ("nbclient", "nbformat", "ipykernel"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode:
            pytest.skip(f"no {module} (apt-get install python3-nbclient python3-ipykernel)")
    import nbformat.v4 as v4

    sources = cells((SOURCE / "tools" / "pages" / "notebook.md").read_text(encoding="utf-8"))
    assert len(sources) > 4
    # As in a notebook, the last expression of a cell is displayed.
    sources = [f"HOIST = {str(SOURCE)!r}", *sources, "model", "layer", "proof", "bundle", "study"]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])
    (tmp_path / "page.ipynb").write_text(v4.writes(notebook))
    ran = subprocess.run([sys.executable, "-c", EXECUTE, "page.ipynb", "shown.ipynb"], cwd=tmp_path, env=ENVIRONMENT,
                         text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    shown = v4.reads((tmp_path / "shown.ipynb").read_text())
    wrong = [output for cell in shown.cells for output in cell.outputs if output.output_type == "error"]
    # The page shows one mistake on purpose.
    assert [output.ename for output in wrong] == ["UsageError"], wrong
    looked_at = {cell.source: output.data for cell in shown.cells for output in cell.outputs
                 if output.output_type == "execute_result"}
    for name, words in {"model": "digits_fully_connected", "layer": "conv1", "proof": "batch-norm-folding",
                        "bundle": "digits_residual", "study": "<iframe"}.items():
        assert words in looked_at[name]["text/html"], (name, looked_at[name]["text/html"][:300])
    # HTML of models cannot affect the surrounding page, and models also have a text form.
    assert "<script" not in looked_at["model"]["text/html"]
    assert looked_at["study"]["text/plain"]
