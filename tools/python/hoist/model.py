"""A model: check, inspect, compile, choose, export."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence, Union, overload

from . import _core, _html
from ._call import Listener, ask, raising
from ._option_types import (ChooseOptions, CompileOptions, Data, ExportOptions, FileName, GradientOptions, ModelOptions,
                            TrainOptions)
from ._options import Words, folder_of
from .bundle import Bundle
from .errors import BudgetError, InputError, Problem
from .ir import Kernel, Lowered, Program, Summary, kernels_of, summary_of
from .study import Study
from .training import Training, training_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A path, the bytes of a file, or an onnx.ModelProto.
Source = Union[FileName, bytes, Any]


@dataclass(frozen=True)
class OperatorUse:
    """An operator of a model."""

    domain: str  #: "" is ai.onnx
    name: str
    count: int
    support: str  #: "supported", "not supported", ...


@dataclass(frozen=True)
class Check:
    """True if the model can be compiled."""

    supported: bool
    operators: tuple[OperatorUse, ...]
    problems: tuple[Problem, ...]  #: everything that prevents compilation
    summary: Summary | None  #: None if it cannot be compiled
    text: str  #: the output of `hoist check`

    def __bool__(self) -> bool:
        return self.supported

    def __str__(self) -> str:
        return "\n".join([self.text.rstrip("\n"), *map(str, self.problems)])

    def _repr_html_(self) -> str:
        uses = _html.table(("operator", "count", "support"),
                           [(f"{use.domain}.{use.name}" if use.domain else use.name, use.count, use.support)
                            for use in self.operators])
        problems = "".join(_html.paragraph(problem) for problem in self.problems)
        return problems + uses + (self.summary._repr_html_() if self.summary else "")


class Model(Lowered):
    """A model with the options of its lowering, made by load(). The first use reads and lowers it, and the result is
    cached; options of a call are added to and override the options of the model."""

    def __init__(self, source: Source, **options: Unpack[ModelOptions]) -> None:
        """See load()."""
        self._options: Mapping[str, Any] = options
        name = "model"
        if hasattr(source, "SerializeToString"):
            # The name of the file is the name of the model.
            given = getattr(getattr(source, "graph", None), "name", "")
            name = re.sub(r"[^\w.-]", "_", given).lstrip(".")[:100] or name
            source = source.SerializeToString()
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._path = folder_of(self) / f"{name}.onnx"
            self._path.write_bytes(source)
        else:
            self._path = Path(source)
        if not self._path.is_file():
            raise InputError([Problem(str(self._path), "is not a file")])
        with Words(ModelOptions, options):
            pass  # unknown options fail immediately

    @property
    def path(self) -> Path:
        """The file of the model; a temporary one for bytes."""
        return self._path

    def __repr__(self) -> str:
        return f"<hoist.Model {str(self._path)!r}>"

    def __str__(self) -> str:
        return self._opened.sentence()

    def _repr_html_(self) -> str:
        return _html.paragraph(self) + self.layers._repr_html_()

    # Properties

    @cached_property
    def _opened(self) -> _core.Model:
        with Words(ModelOptions, self._options) as words, raising():
            return _core.Model(str(self._path), words, Listener())

    def _describe(self) -> Any:
        return json.loads(self._opened.summary())

    def check(self) -> Check:
        """Checks whether the model can be compiled and lists all problems. A file that is not a model raises
        InputError."""
        decisive = ("dim", "value", "state", "initial")
        reading = {name: value for name, value in self._options.items() if name in decisive}
        answer = ask("check", [str(self._path)], ModelOptions, reading, (0, 1, 3))
        if answer.json is None:
            raise InputError(answer.problems)
        found = answer.json
        uses = tuple(OperatorUse(**use) for use in found["operators"])
        return Check(found["supported"], uses, tuple(Problem(**problem) for problem in found["problems"]),
                     summary_of(found) if "model" in found else None, answer.text)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels of the model."""
        return kernels_of(self._opened.kernels())

    @property
    def program(self) -> Program:
        """The model as a program of operator calls."""
        return Program(self._opened.program())

    @property
    def rewritten(self) -> Program:
        """The program after all passes over calls, from which kernels are made."""
        with raising():
            return Program(self._opened.rewritten())

    def _stages(self, layer: str, stages: Sequence[str], types: bool) -> Any:
        with raising():
            return json.loads(self._opened.stages(layer, list(stages), types))

    def _explanation(self, layer: str, terms: bool) -> Any:
        with raising():
            return json.loads(self._opened.explanation(layer, terms))

    # Compilation

    @overload
    def compile(self, output: FileName | None = None, *, budget: list[str] | tuple[str, ...],
                **options: Unpack[CompileOptions]) -> dict[str, Bundle | None]: ...

    @overload
    def compile(self, output: FileName | None = None, *, budget: str | None = None,
                **options: Unpack[CompileOptions]) -> Bundle: ...

    def compile(self, output: FileName | None = None, *, budget: str | list[str] | tuple[str, ...] | None = None,
                **options: Unpack[CompileOptions]) -> Bundle | dict[str, Bundle | None]:
        """Compiles the model to a bundle, the folder `output` (by default the model's name with .hoist, here), and
        compares its kernels with the interpreter before it appears.

        Options as in `hoist compile`: `target="native"`, `dim={"N": 8}`, `force=True`, and with a `budget` such
        as "top1=0.5%" also `calibrate`, `verify_data`, `record`, ... Raises BudgetError if the budget is not met and
        MismatchError if a kernel differs from the interpreter; no bundle is written then.

        A list of budgets gives a bundle for each, from one study, in folders with the budget in their names. The result
        maps each budget to its bundle, or to None if it is not met.
        """
        if isinstance(budget, (list, tuple)) and not budget:
            raise ValueError("budget: the list is empty")
        subject = {**self._options, **options, "budget": budget}
        if output is not None:
            subject["output"] = output
        answer = ask("compile", [str(self._path)], _Compiling, subject, (0, 1))
        if isinstance(budget, (list, tuple)):
            # For a single budget the program prints the answer for one.
            answers = answer.json.get("budgets", [answer.json])
            return {text: Bundle(each["bundle"], _compilation=each) if "bundle" in each else None
                    for text, each in zip(budget, answers)}
        if answer.exit_code == 1 and not options.get("best_effort"):
            raise BudgetError(answer.problems)
        return Bundle(answer.json["bundle"], _compilation=answer.json)

    def gradient(self, of: str | None = None, wrt: str | Sequence[str] = "weights", output: FileName | None = None,
                 **options: Unpack[GradientOptions]) -> Bundle:
        """Compiles a loss and its gradients to a bundle, the folder `output` (by default the model's name with
        .gradient.hoist, here), and compares its kernels with the interpreter before it appears.

        `of` is a value of one element, "sum(NAME)" for the sum of a value's elements, or, with `loss`, the value that
        the loss judges (by default the only output); "cross-entropy" adds the input labels, "mse" the input target.
        `wrt` is "weights", "inputs", or names of values; the gradient of NAME is the output NAME.gradient. Options as in
        `hoist grad`.
        """
        subject = {**self._options, **options, **({} if of is None else {"of": of}), "wrt": [wrt] if isinstance(wrt, str) else list(wrt),
                   "output": f"{self._path.stem}.gradient.hoist" if output is None else output}
        answer = ask("grad", [str(self._path)], _Differentiating, subject)
        return Bundle(answer.json["bundle"], _compilation=answer.json)

    def train(self, data: Data, output: FileName | None = None, **options: Unpack[TrainOptions]) -> Training:
        """Trains the model with its own kernels, and writes the ONNX file `output` (by default the model's name with
        .trained.onnx, here): the same model with other weights.

        `data` is a file, a folder, or a dictionary of arrays with "labels" (or "target", for the loss "mse") among
        them; `validation` too, or a share of the data. Options as in `hoist train`: `epochs=10`, `optimiser="adamw"`,
        `initialise="he"`, `auto=["lr", "clip"]`, ... Ctrl-C keeps the best weights.
        """
        subject = {**self._options, **options, "data": data,
                   "output": f"{self._path.stem}.trained.onnx" if output is None else output}
        answer = ask("train", [str(self._path)], _Training, subject)
        return training_of(answer.json, Model(answer.json["model"], **self._options))

    def choose(self, budget: str, **options: Unpack[ChooseOptions]) -> Study:
        """Measures sensitivities and the gain of each rule, chooses layer by layer within the budget, and
        verifies the choice: a Study, which compiles it.

        `budget` is "top1=0.5%", "sqnr=30dB", "agreement=99%" or "metric=COMMAND"; `calibrate` is needed, a file or
        arrays, unless a `record` of an earlier study is given. Ctrl-C returns the best verified choice,
        if there is one.
        """
        return Study(self, budget, {**self._options, **options})

    def export(self, output: FileName, **options: Unpack[ExportOptions]) -> Path:
        """Writes the model as ONNX: unchanged, under neural rules (`rule`, `calibrate`), or with the choice of a record
        (`record`, `budget`). Options as in `hoist export`."""
        reading = {name: value for name, value in self._options.items() if name in ("dim", "value")}
        ask("export", [str(self._path)], _Exporting, {**reading, **options, "output": output})
        return Path(output)


class _Compiling(CompileOptions, total=False):
    output: FileName
    budget: Union[str, Sequence[str], None]


class _Differentiating(GradientOptions, total=False):
    of: str
    wrt: Sequence[str]
    output: FileName


class _Training(TrainOptions, total=False):
    data: Data
    output: FileName


class _Exporting(ExportOptions, ModelOptions, total=False):
    output: FileName


def load(source: Source, **options: Unpack[ModelOptions]) -> Model:
    """A model: a path, the bytes of a file, or an onnx.ModelProto. `options` are the options of
    `hoist inspect`: `dim={"N": 8}`, `pass_={"convolution": "im2col"}`, `device=0`, ..."""
    return Model(source, **options)
