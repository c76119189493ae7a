"""A choice under a budget, with all its measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from . import _html
from ._call import ask
from ._option_types import ChooseOptions, FileName
from ._options import folder_of
from .bundle import Bundle

if TYPE_CHECKING:
    from .model import Model

# Options that the record already contains, and options for measurements or the page alone.
_MEASURING = ("calibrate", "verify_data", "time", "tuning")


@dataclass(frozen=True)
class Point:
    """A considered choice of rules for all layers."""

    name: str
    chosen: bool
    verified: bool  #: measured on data that the choice did not use
    seconds: float | None  #: time of a run, the middle of its interval; None if not timed
    sqnr: float | None  #: of the outputs in dB; None if equal or unknown
    lost: int | None  #: samples that only the unchanged model answers correctly
    gained: int | None
    bytes: int | None  #: of stored values and weights
    rules: Mapping[str, str]  #: by site


class _Asking(ChooseOptions, total=False):
    output: FileName
    budget: str


class Study:
    """The result of Model.choose. A notebook shows the report."""

    def __init__(self, model: Model, budget: str, options: Mapping[str, Any]) -> None:
        """See Model.choose."""
        folder = folder_of(self)
        self._model = model
        self.budget = budget
        asked = {"record": folder / "record.json", **options}
        page = folder / "report.html"
        answer = ask("report", [str(model.path)], _Asking, {**asked, "budget": budget, "output": page})
        # Later calls use the record.
        self._options = {name: value for name, value in asked.items() if name not in _MEASURING}
        self.numbers: Mapping[str, Any] = answer.json  #: the output of `hoist report --json` (tools/json.md)
        self.page = page.read_text(encoding="utf-8")  #: the report: one self-contained page of HTML
        self.text = answer.text  #: the choice, for a terminal

    @property
    def met(self) -> bool:
        """True if the chosen point is within the budget."""
        return bool(self.numbers["budget_met"])

    @property
    def summary(self) -> str:
        """The outcome in a line."""
        return str(self.numbers["summary"])

    @property
    def record(self) -> Path:
        """The file with all measurements, temporary unless `record` named one."""
        return Path(self._options["record"])

    @property
    def points(self) -> list[Point]:
        """The considered points: the unchanged model, uniform-precision baselines, and the front."""
        return [Point(each["name"], each["chosen"], each["verified"], (each.get("time") or {}).get("value"),
                      each.get("sqnr"), each.get("lost"), each.get("gained"), each.get("size"),
                      each.get("assignment") or {})
                for each in self.numbers["points"]]

    @property
    def chosen(self) -> Point:
        """The chosen point."""
        return next(point for point in self.points if point.chosen)

    @property
    def notes(self) -> list[str]:
        return list(self.numbers["notes"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<hoist.Study of {self.numbers['model']} for {self.budget}: {self.summary}>"

    def _repr_html_(self) -> str:
        return _html.framed(self.page)

    def write_report(self, file: FileName) -> Path:
        """Writes the page to a file."""
        path = Path(file)
        path.write_text(self.page, encoding="utf-8")
        return path

    def compile(self, output: FileName | None = None, *, force: bool = False, best_effort: bool = False,
                no_check: bool = False) -> Bundle:
        """Compiles the choice without measuring again. Raises BudgetError if the budget is not met, unless `best_effort`
        requests the best point."""
        return self._model.compile(output, **{**self._options, "budget": self.budget, "force": force,
                                              "best_effort": best_effort, "no_check": no_check})

    def choose(self, budget: str, **options: Any) -> Study:
        """Chooses for another budget, objective or preferences from the same record. Only new points are measured, which
        needs `calibrate` again."""
        return Study(self._model, budget, {**self._options, **options})

    def export(self, output: FileName, *, force: bool = False) -> Path:
        """Exports the choice as ONNX, for other engines."""
        return self._model.export(output, record=self.record, budget=self.budget, force=force)

