"""A choice under a budget, with everything that was measured for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from . import _html
from ._call import ask
from ._options import ChooseOptions, FileName, folder_of
from .bundle import Bundle

if TYPE_CHECKING:
    from .model import Model

# What a record has already, or what is only for measuring or for the page.
_MEASURING = ("calibrate", "verify_data", "time", "tuning")


@dataclass(frozen=True)
class Point:
    """A choice of rules for all layers that was weighed."""

    name: str
    chosen: bool
    verified: bool  #: measured on data that it was not chosen by
    seconds: float | None  #: of a run, the middle of its interval; None where it was not timed
    sqnr: float | None  #: of the outputs in dB; None where nothing differs or it is not known
    lost: int | None  #: samples that the model has right and this has not
    gained: int | None
    bytes: int | None  #: of stored values and weights
    rules: Mapping[str, str]  #: by the place in the model


class _Asking(ChooseOptions, total=False):
    output: FileName
    budget: str


class Study:
    """What was measured and chosen, by Model.choose. A notebook shows the report."""

    def __init__(self, model: Model, budget: str, options: Mapping[str, Any]) -> None:
        """What Model.choose does."""
        folder = folder_of(self)
        self._model = model
        self.budget = budget
        asked = {"record": folder / "record.json", **options}
        page = folder / "report.html"
        answer = ask("report", [str(model.path)], _Asking, {**asked, "budget": budget, "output": page})
        # From here on the record answers.
        self._options = {name: value for name, value in asked.items() if name not in _MEASURING}
        self.numbers: Mapping[str, Any] = answer.json  #: what `hoist report --json` writes (tools/json.md)
        self.page = page.read_text(encoding="utf-8")  #: the report: one page of HTML that needs nothing beside itself
        self.text = answer.text  #: what was chosen, for a terminal

    @property
    def met(self) -> bool:
        """Whether the chosen point is within the budget."""
        return bool(self.numbers["budget_met"])

    @property
    def summary(self) -> str:
        """The outcome in a line."""
        return str(self.numbers["summary"])

    @property
    def record(self) -> Path:
        """The file with all that was measured, a temporary one unless Model.choose was given another."""
        return Path(self._options["record"])

    @property
    def points(self) -> list[Point]:
        """What was weighed: the model as it is, uniform formats, and points of the front."""
        return [Point(each["name"], each["chosen"], each["verified"], (each.get("time") or {}).get("value"),
                      each.get("sqnr"), each.get("lost"), each.get("gained"), each.get("size"),
                      each.get("assignment") or {})
                for each in self.numbers["points"]]

    @property
    def chosen(self) -> Point:
        """The point that was chosen."""
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
        """The page as a file, which opens from disk."""
        path = Path(file)
        path.write_text(self.page, encoding="utf-8")
        return path

    def compile(self, output: FileName | None = None, *, force: bool = False, best_effort: bool = False,
                no_check: bool = False) -> Bundle:
        """The bundle of what was chosen; nothing is measured again. Raises BudgetError where the budget is not met,
        unless `best_effort` asks for the best point all the same."""
        return self._model.compile(output, **{**self._options, "budget": self.budget, "force": force,
                                              "best_effort": best_effort, "no_check": no_check})

    def choose(self, budget: str, **options: Any) -> Study:
        """Another budget, or objective, or preferences, from the same record: only what is new is measured, for which
        `calibrate` has to be given again."""
        return Study(self._model, budget, {**self._options, **options})

    def export(self, output: FileName, *, force: bool = False) -> Path:
        """What was chosen as ONNX, for other engines."""
        return self._model.export(output, record=self.record, budget=self.budget, force=force)

