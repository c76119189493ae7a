"""A model between ONNX and kernels: programs, layers, derivations, kernels. Each is structured text that a notebook
renders."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Mapping, Sequence

from . import _html
from .errors import Problem, UsageError

STAGES = ("graph", "high", "low", "halide", "opencl")


@dataclass(frozen=True)
class Value:
    """An input or an output of a model."""

    name: str
    type: str  #: hoist's name of the element type: "f32", "i8", ...
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return self.name + " " + "".join(f"[{extent}]" for extent in self.shape) + self.type


@dataclass(frozen=True)
class Summary:
    """The numbers of a model, lowered or in a bundle."""

    model: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layer_count: int
    kernel_count: int
    step_count: int  #: of a run
    operations: int
    multiplications: int
    weight_bytes: int
    value_bytes: int  #: memory of temporary arrays

    def _repr_html_(self) -> str:
        rows = [("inputs", ", ".join(map(str, self.inputs))), ("outputs", ", ".join(map(str, self.outputs))),
                ("layers", self.layer_count), ("kernels", self.kernel_count),
                ("multiplications", f"{self.multiplications:,}"),
                ("weights", f"{self.weight_bytes:,} bytes"), ("between layers", f"{self.value_bytes:,} bytes")]
        return _html.table((self.model, ""), rows)


@dataclass(frozen=True)
class Program:
    """A program of operator calls, in hoist's language."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.block(self.text)


@dataclass(frozen=True)
class Stage:
    """A layer at one stage: one of STAGES."""

    stage: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"-- {self.stage}: {self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        return _html.paragraph(f"{self.stage}: {self.title}") + _html.block(self.text)


@dataclass(frozen=True)
class Step:
    """A rule or a pass, applied once."""

    number: int
    rule: str
    rule_class: str  #: exact (keeps every bit), rounding, or neural (changes values)
    note: str
    layer: str  #: "" for steps of the whole program
    parameters: Mapping[str, str]
    value: str
    place: str  #: in the term, as a path
    absorbed: tuple[str, ...]  #: layers that the step merged into this one
    before: str = ""  #: both sides; "" if there are none
    after: str = ""
    term: str = ""  #: the whole term after the step, if requested

    @property
    def _title(self) -> str:
        at = f" at layer {self.layer}" if self.layer else ""
        return f"{self.number}. {self.rule}{at} [{self.rule_class}] {self.note}"

    def __str__(self) -> str:
        return self._title + (f"\n    {self.before}\n  = {self.after}" if self.before else "")

    def _repr_html_(self) -> str:
        sides = _html.block(f"  {self.before}\n= {self.after}") if self.before else _html.paragraph(self.value)
        return _html.folded(self._title, sides)


@dataclass(frozen=True)
class Proof:
    """The derivation of the term of a kernel from the model."""

    kernel: str
    layers: tuple[str, ...]
    steps: tuple[Step, ...]
    term: str

    def __str__(self) -> str:
        steps = "\n".join(map(str, self.steps))
        return f"kernel {self.kernel} computes {', '.join(self.layers)}\n{steps}\nend:\n{self.term}"

    def _repr_html_(self) -> str:
        rows = "".join(step._repr_html_() for step in self.steps)
        title = f"kernel {self.kernel} computes {', '.join(self.layers)}"
        return _html.heading(title) + rows + _html.folded("the kernel's term", _html.block(self.term))


@dataclass(frozen=True)
class Derivation:
    """The derivation of the kernels of a layer, like a proof."""

    layer: str
    kernels: tuple[Proof, ...]
    absence: str = ""  #: the reason if no kernel computes the layer
    steps: tuple[Step, ...] = ()  #: the steps in that case

    def __str__(self) -> str:
        return "\n".join([*([self.absence] if self.absence else []), *map(str, self.steps), *map(str, self.kernels)])

    def _repr_html_(self) -> str:
        absence = _html.paragraph(self.absence) if self.absence else ""
        return absence + "".join([*(step._repr_html_() for step in self.steps),
                                  *(proof._repr_html_() for proof in self.kernels)])


@dataclass(frozen=True)
class Kernel:
    """A function for the device; several steps of a run may use it."""

    name: str
    layers: tuple[str, ...]  #: the layers of its first step
    operations: int  #: arithmetic ones, of one launch
    term: str  #: low-level Lift
    host: str = ""  #: the host function; "" for kernels of a device

    def __str__(self) -> str:
        return f"kernel {self.name} computes {', '.join(self.layers)}\n{self.term}"

    def _repr_html_(self) -> str:
        return _html.heading(f"kernel {self.name} computes {', '.join(self.layers)}") + _html.block(self.term)


class Lowered(ABC):
    """A model or a bundle, with layers."""

    @abstractmethod
    def _describe(self) -> Any:
        """The output of `hoist inspect --json`."""

    @abstractmethod
    def _stages(self, layer: str, stages: Sequence[str], types: bool) -> Any: ...

    @abstractmethod
    def _explanation(self, layer: str, terms: bool) -> Any: ...

    @cached_property
    def _described(self) -> Any:
        return self._describe()

    @property
    def summary(self) -> Summary:
        """Inputs, outputs, operations and bytes; for the first size of a bundle with several."""
        return summary_of(self._described)

    @property
    def layers(self) -> Layers:
        """The layers of the model, by position or by name: `model.layers["conv1"].high`."""
        return layers_of(self._described, self)


@dataclass(frozen=True)
class Layer:
    """A layer of the model. Its stages are computed on demand."""

    name: str
    operator: str
    kernels: tuple[str, ...]  #: the kernels that compute it
    absence: str  #: the reason if no kernel does; "" otherwise
    _of: Lowered = field(repr=False, compare=False)

    def stages(self, *stages: str, types: bool = False) -> list[Stage]:
        """The layer at these stages (default: all of STAGES). `types`: with the type after each pattern. A bundle has neither
        "high" nor "halide"."""
        for stage in stages:
            if stage not in STAGES:
                raise UsageError([Problem(f"stage {stage}", "is not there", "there are " + ", ".join(STAGES))])
        return [Stage(**stage) for stage in self._of._stages(self.name, stages, types)["stages"]]

    @property
    def high(self) -> str:
        """The meaning of the layer: the high-level term."""
        return self._text("high")

    @property
    def low(self) -> str:
        """The low-level terms of its kernels: loops, memory, vectors."""
        return self._text("low")

    @property
    def halide(self) -> str:
        """Halide's schedule of its kernels."""
        return self._text("halide")

    @property
    def opencl(self) -> str:
        """The source of its kernels."""
        return self._text("opencl")

    def _text(self, stage: str) -> str:
        return "\n".join(each.text for each in self.stages(stage))

    def explain(self, *, terms: bool = False) -> Derivation:
        """The derivation of its kernels, step by step; with the whole term after each step if `terms` is true."""
        found = self._of._explanation(self.name, terms)
        proofs = tuple(Proof(kernel["name"], tuple(kernel["layers"]), _steps(kernel["steps"]), kernel["term"])
                       for kernel in found["kernels"])
        return Derivation(found["layer"], proofs, found.get("absence", ""), _steps(found.get("steps", [])))

    def __str__(self) -> str:
        return f"{self.name} ({self.operator}): {', '.join(self.kernels) or self.absence}"

    def _repr_html_(self) -> str:
        stages = "".join(_html.folded(f"{stage.stage}: {stage.title}", _html.block(stage.text), stage.stage == "high")
                         for stage in self.stages())
        return _html.heading(str(self)) + stages


class Layers(Sequence[Layer]):
    """The layers of a model in its order, by position or by name."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = list(layers)
        self._by_name = {layer.name: layer for layer in layers}

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, which: Any) -> Any:
        """Raises KeyError for an unknown name."""
        return self._by_name[which] if isinstance(which, str) else self._layers[which]

    def __repr__(self) -> str:
        return f"<{len(self)} layers: {', '.join(layer.name for layer in self)}>"

    def _repr_html_(self) -> str:
        return _html.table(("layer", "operator", "kernels"),
                           [(layer.name, layer.operator, ", ".join(layer.kernels) or layer.absence) for layer in self])


def _steps(given: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    return tuple(Step(each["number"], each["rule"], each["class"], each["note"], each["layer"], each["parameters"],
                      each["value"], each["place"], tuple(each["absorbed"]), each.get("before", ""),
                      each.get("after", ""), each.get("term", "")) for each in given)


def summary_of(given: Mapping[str, Any]) -> Summary:
    def values(arrays: Sequence[Mapping[str, Any]]) -> tuple[Value, ...]:
        return tuple(Value(array["name"], array["type"], tuple(array["shape"]), array["bytes"]) for array in arrays)

    return Summary(given["model"], values(given["inputs"]), values(given["outputs"]), given["layer_count"],
                   given["kernel_count"], given["step_count"], given["operations"], given["multiplications"],
                   given["weight_bytes"], given["value_bytes"])


def layers_of(given: Mapping[str, Any], of: Lowered) -> Layers:
    return Layers([Layer(layer["name"], layer["operator"], tuple(layer["kernels"]), layer.get("absence", ""), of)
                   for layer in given["layers"]])


def kernels_of(text: str) -> list[Kernel]:
    return [Kernel(each["name"], tuple(each["layers"]), each["operations"], each["term"], each["host"])
            for each in json.loads(text)]
