"""A training: its learning curve, and the trained model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _html

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class Judgement:
    """The quality of weights on data."""

    loss: float
    right: float | None = None  #: the share of right classes; None for losses without classes


@dataclass(frozen=True)
class Epoch:
    """A point of the learning curve."""

    epoch: int  #: from 1
    loss: float  #: the mean of the epoch's steps
    rate: float  #: the learning rate at its end
    validation: Judgement | None  #: None without `validation`
    found: dict[str, float]  #: the hyper-parameters of `auto`


@dataclass(frozen=True)
class Training:
    """The result of Model.train()."""

    model: Model  #: the trained model
    epochs: tuple[Epoch, ...]
    best: Judgement | None  #: of the weights that were kept; None without `validation`
    best_epoch: int  #: from 1; 0 without `validation`
    steps: int
    steps_per_second: float
    weights: tuple[str, ...]  #: the names of the trained initialisers
    ended: str  #: why before the last epoch; "" otherwise
    json: Any  #: the answer of the program (tools/json.md)

    def __str__(self) -> str:
        last = self.epochs[-1].loss if self.epochs else float("nan")
        best = "" if self.best is None else f", validation loss {self.best.loss:.5g} in epoch {self.best_epoch}"
        return f"{self.steps} steps, loss {last:.5g}{best}"

    def _repr_html_(self) -> str:
        def cells(each: Epoch) -> tuple[object, ...]:
            judged = each.validation
            right = "" if judged is None or judged.right is None else f"{100 * judged.right:.2f} %"
            return (each.epoch, f"{each.loss:.5g}", "" if judged is None else f"{judged.loss:.5g}", right,
                    f"{each.rate:.3g}", *(f"{value:.3g}" for name, value in each.found.items() if name != "lr"))

        found = [name for name in (self.epochs[0].found if self.epochs else ()) if name != "lr"]
        return _html.paragraph(self) + _html.table(("epoch", "loss", "validation", "right", "rate", *found),
                                                   map(cells, self.epochs))


def training_of(answer: Any, model: Model) -> Training:
    """The training that the program's answer describes."""

    def judgement(found: Any) -> Judgement | None:
        return None if found is None else Judgement(found["loss"], found.get("right"))

    epochs = tuple(Epoch(each["epoch"], each["loss"], each["rate"], judgement(each.get("validation")),
                         each.get("found", {})) for each in answer["epochs"])
    best = answer.get("best")
    return Training(model, epochs, judgement(best), best["epoch"] if best else 0, answer["steps"],
                    answer["steps_per_second"], tuple(answer["weights"]), answer["ended"], answer)
