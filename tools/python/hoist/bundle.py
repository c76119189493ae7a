"""A bundle: run, measure, verify and inspect it."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from numpy.typing import NDArray

from . import _html, runtime
from ._call import Answer, ask
from ._option_types import BundleOptions, Data, EvaluateOptions, FileName, VerifyOptions
from .errors import DeviceError, InputError, MismatchError, Problem, UsageError
from .ir import Lowered

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Evaluation:
    """The accuracy of a classifier."""

    metric: str
    value: float  #: the share of correct answers
    low: float  #: its 95 % interval
    high: float
    correct: int
    total: int
    top5: float | None  #: the share of samples with their label among the five best
    ms_per_sample: float
    device: str
    numbers: Mapping[str, Any]  #: the output of `hoist evaluate --json`, classes and confusion included
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        confusion = _html.table(("label", "answer", "samples"), [(each["label"], each["answer"], each["samples"])
                                                                 for each in self.numbers["confusion"]])
        return _html.paragraph(self.text) + _html.folded("wrong answers", confusion)


@dataclass(frozen=True)
class Finding:
    """One line of a check."""

    subject: str
    passed: bool
    message: str = ""
    compared: int = 0  #: elements
    largest_error: float | None = None


class _Inspecting(BundleOptions, total=False):
    stage: Sequence[str]
    terms: bool


class _Data(EvaluateOptions, total=False):
    data: Data


class _Comparing(BundleOptions, total=False):
    data: Data
    against: FileName


class _Exporting(BundleOptions, total=False):
    output: FileName
    model: FileName
    force: bool


class Bundle(Lowered):
    """A bundle on disk, made by Model.compile or open(). The first run opens it on a device; a context manager closes it.
    Threads may share a bundle."""

    def __init__(self, folder: FileName, *, device: str | int | None = None, threads: int = 0,
                 _compilation: Mapping[str, Any] | None = None) -> None:
        """See open()."""
        self._folder = Path(folder)
        self._device, self._threads = device, threads
        self._lock = threading.Lock()
        self._running: runtime.Bundle | None = None
        #: The output of `hoist compile --json`; None for a bundle that existed before.
        self.compilation = _compilation
        if not (self._folder / "manifest.json").is_file():
            raise InputError([Problem(str(self._folder), "is not a bundle")])

    @property
    def folder(self) -> Path:
        return self._folder

    def __fspath__(self) -> str:
        return str(self._folder)

    def __repr__(self) -> str:
        return f"<hoist.Bundle {str(self._folder)!r}>"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_() + self.layers._repr_html_()

    # Running

    @property
    def opened(self) -> runtime.Bundle:
        """The bundle on its device, with the interface of hoist.runtime: memory without copies, images, times of the
        steps."""
        with self._lock:
            if self._running is None or self._running.closed:
                with self._raising():
                    self._running = runtime.open(self._folder, device=self._device, threads=self._threads)
            return self._running

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        """Converts exceptions of the runtime to exceptions of this package."""
        try:
            yield
        except runtime.Error as error:
            problems = [Problem(str(self._folder), error.message)]
            bad_input = error.status in (runtime.Status.BAD_BUNDLE, runtime.Status.BAD_EXTENT,
                                         runtime.Status.BAD_VALUE, runtime.Status.TOO_MANY_ITERATIONS)
            if bad_input:
                raise InputError(problems) from error
            raise (UsageError if isinstance(error, runtime.ArgumentError) else DeviceError)(problems) from error

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None, /, **named: Any) -> list[NDArray[Any]]:
        """Sets the inputs, runs, and returns a copy of every output: `[logits] = bundle.run(image=array)`. Inputs are
        numpy arrays or objects with __dlpack__, with the exact shape and type of the input."""
        bundle = self.opened
        with self._raising():
            return bundle.run(inputs, **named)

    def close(self) -> None:
        """Releases the device's memory; the next run() opens the bundle again."""
        with self._lock:
            if self._running is not None:
                self._running.close()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # Measuring and checking

    def _where(self) -> dict[str, Any]:
        return {"device": self._device, "threads": self._threads or None}

    def evaluate(self, data: Data, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluates the bundle on labelled data: a file, a folder, or arrays with "labels" among them. Options as in
        `hoist evaluate`."""
        answer = ask("evaluate", [str(self._folder)], _Data, {**self._where(), **options, "data": data})
        found = answer.json
        return Evaluation(found["metric"], found["value"], found["low"], found["high"], found["correct"],
                          found["total"], found.get("top5"), found["ms_per_sample"], found["device"], found,
                          answer.text.rstrip("\n"))

    def compare(self, reference: Bundle | FileName, data: Data, **options: Unpack[BundleOptions]) -> Mapping[str, Any]:
        """Compares the outputs with the outputs of another bundle of the model, of any kind: for each the SQNR, and how
        many positions of masks, classes or integers agree. Data need no labels. As `hoist evaluate --against --json`
        writes it."""
        given = {**self._where(), **options, "data": data, "against": reference}
        return _mapping(ask("evaluate", [str(self._folder)], _Comparing, given))

    def verify(self, **options: Unpack[VerifyOptions]) -> list[Finding]:
        """Checks the files, then every kernel on the device against the interpreter; with `derivation` that the
        derivation leads to the kernels, with `data` the certificate of a budget. Options as in `hoist verify`.
        Raises MismatchError with the failed findings."""
        where = {} if options.get("derivation") else self._where()
        answer = ask("verify", [str(self._folder)], VerifyOptions, {**where, **options}, (0, 1, 5))
        findings = [Finding(each["subject"], each["passed"], each.get("message", ""), each.get("compared") or 0,
                            each.get("largest_error")) for each in (answer.json or {}).get("findings", [])]
        failed = [Problem(each.subject, each.message) for each in findings if not each.passed]
        if failed or answer.exit_code != 0:
            raise MismatchError(failed or answer.problems)
        return findings

    def bench(self, *, seconds: float | None = None, roofline: bool = False) -> Mapping[str, Any]:
        """Times of a run and of each kernel, as `hoist bench --json` writes them."""
        return _mapping(ask("bench", [str(self._folder)], _Bench, {**self._where(), "seconds": seconds,
                                                                   "roofline": roofline}))

    # Properties

    def _describe(self) -> Any:
        return ask("inspect", [str(self._folder)], _Inspecting, {}).json

    def _stages(self, layer: str, stages: Sequence[str], types: bool) -> Any:
        if types:
            raise InputError([Problem("types", "needs the model: a bundle keeps expressions as text")])
        return ask("inspect", [str(self._folder), layer], _Inspecting, {"stage": list(stages) or None}).json

    def _explanation(self, layer: str, terms: bool) -> Any:
        return ask("explain", [str(self._folder), layer], _Inspecting, {"terms": terms}).json

    def export(self, output: FileName, *, model: FileName | None = None, force: bool = False) -> Path:
        """Exports the computation of the bundle as ONNX, for other engines; `model` is its source, needed for constants
        that the bundle stores in another form."""
        ask("export", [str(self._folder)], _Exporting, {"output": output, "model": model, "force": force})
        return Path(output)


class _Bench(BundleOptions, total=False):
    seconds: float
    roofline: bool


def _mapping(answer: Answer) -> Mapping[str, Any]:
    found: Mapping[str, Any] = answer.json
    return found


def open(folder: FileName, *, device: str | int | None = None, threads: int = 0) -> Bundle:
    """Opens an existing bundle, on this device (an index, a name or a part of a name), with at most this number of CPU threads
    (0: all)."""
    return Bundle(folder, device=device, threads=threads)
