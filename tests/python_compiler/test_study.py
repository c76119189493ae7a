"""A choice under a budget: measured once, shown, compiled, and repeated for another budget."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DIGITS, ENVIRONMENT, MODELS

import hoist


def arrays() -> dict[str, Any]:
    with np.load(MODELS / "digits_fully_connected_calibration.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hoist.Study:
    told: list[str] = []
    hoist.set_progress(told.append)
    try:
        study = hoist.load(DIGITS).choose("sqnr=20dB", calibrate=arrays(), objective="size")
    finally:
        hoist.set_progress(None)
    assert any(told) and told[-1] == "", "progress is told, and its end"
    return study


def test_what_was_chosen(study: hoist.Study) -> None:
    assert study.met
    assert study.chosen.verified and study.chosen.sqnr is not None and study.chosen.sqnr >= 20
    assert study.chosen.rules and any(point.name == "unchanged" or not point.rules for point in study.points)
    assert study.numbers["objective"] == "size" and study.summary in repr(study)
    assert "<!doctype html>" in study.page[:100].lower()
    frame = study._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"') and "&lt;!doctype html&gt;" in frame[:400].lower()


def test_the_bundle_is_that_of_the_study(study: hoist.Study, tmp_path: Path) -> None:
    bundle = study.compile(tmp_path / "small.hoist")
    assert bundle.compilation is not None and bundle.compilation["budget"]["met"]
    assert bundle.opened.manifest["certificate"]
    assert "sqnr" in str(bundle.opened.manifest["certificate"])
    assert study.export(tmp_path / "small.onnx").stat().st_size > 0
    assert hoist.load(tmp_path / "small.onnx").check()
    assert study.write_report(tmp_path / "report.html").read_text() == study.page


def test_for_native_code(tmp_path: Path) -> None:
    study = hoist.load(DIGITS).choose("sqnr=5dB", calibrate=arrays(), objective="size", time=1, target="native")
    assert study.numbers["device"].startswith("native")


def test_another_budget_needs_no_data(study: hoist.Study) -> None:
    other = study.choose("sqnr=5dB")
    assert other.met and other.record == study.record
    with pytest.raises(hoist.UsageError, match="calibrate"):
        hoist.load(DIGITS).choose("sqnr=5dB")
    with pytest.raises(hoist.UsageError, match="budget|nonsense"):
        study.choose("nonsense")


def test_several_budgets_in_one_call(study: hoist.Study, tmp_path: Path) -> None:
    model, pinned = hoist.load(DIGITS), {"record": study.record, "calibrate": arrays(), "preferences": ["pin * w8"]}
    bundles = model.compile(tmp_path / "small.hoist", budget=["sqnr=20dB", "sqnr=90dB"], objective="size", **pinned)
    assert list(bundles) == ["sqnr=20dB", "sqnr=90dB"]
    looser, strict = bundles.values()
    assert looser is not None and looser.folder == tmp_path / "small-sqnr-20dB.hoist"
    assert looser.compilation is not None and looser.compilation["budget"]["met"]
    assert strict is None and [each.name for each in tmp_path.glob("*.hoist")] == ["small-sqnr-20dB.hoist"]
    one = model.compile(tmp_path / "one.hoist", budget=("sqnr=20dB",), objective="size", record=study.record)
    assert list(one) == ["sqnr=20dB"] and one["sqnr=20dB"] is not None
    with pytest.raises(ValueError, match="empty"):
        model.compile(budget=[])


def test_a_budget_that_is_not_met_gives_no_bundle(study: hoist.Study, tmp_path: Path) -> None:
    strict = study.choose("sqnr=90dB", preferences=["pin * w8"], calibrate=arrays())
    assert not strict.met
    with pytest.raises(hoist.BudgetError, match="the budget is not met; the best point is"):
        strict.compile(tmp_path / "strict.hoist")
    assert not (tmp_path / "strict.hoist").exists()
    assert strict.compile(tmp_path / "strict.hoist", best_effort=True).folder.is_dir()


_STOPPED = """
import hoist, os, pathlib, signal, threading, time
def stop():
    record = pathlib.Path("record.json")
    while not record.exists() or "uniform" not in record.read_text():
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop, daemon=True).start()
study = hoist.load({model!r}).choose("sqnr=10dB", calibrate={data!r}, objective="size", record="record.json")
print(study.met, bool(study.chosen.rules))
"""


def test_ctrl_c_gives_the_best_so_far(tmp_path: Path) -> None:
    program = _STOPPED.format(model=str(DIGITS), data=str(MODELS / "digits_fully_connected_calibration.npz"))
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, text=True, capture_output=True, check=False,
                         timeout=120, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "True True\n"), ran.stderr
    assert json.loads((tmp_path / "record.json").read_text())["complete"] is False, "it was not at its end"
