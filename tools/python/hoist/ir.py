"""What the compiler has of a model between ONNX and kernels: programs, layers, derivations, kernels. All of it is text
with a structure; a notebook shows it."""

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
    """A model, lowered or in a bundle, in a few numbers."""

    model: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layer_count: int
    kernel_count: int
    step_count: int  #: of a run
    operations: int
    multiplications: int
    weight_bytes: int
    value_bytes: int  #: of memory for what lies between layers

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
    layer: str  #: "" where it is about the whole program
    parameters: Mapping[str, str]
    value: str
    place: str  #: in the term, as a path
    absorbed: tuple[str, ...]  #: layers that are part of that layer now
    before: str = ""  #: both sides; "" where there are none
    after: str = ""
    term: str = ""  #: all of it after the step, where that was asked for

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
    """How the term of a kernel follows from the model."""

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
    """How the kernels of a layer follow from the model, like a proof."""

    layer: str
    kernels: tuple[Proof, ...]
    absence: str = ""  #: why no kernel computes the layer
    steps: tuple[Step, ...] = ()  #: what became of it then

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
    layers: tuple[str, ...]  #: that its first step computes
    operations: int  #: arithmetic ones, of one launch
    term: str  #: low-level Lift
    host: str = ""  #: the function that performs it on the host; "" for what devices run

    def __str__(self) -> str:
        return f"kernel {self.name} computes {', '.join(self.layers)}\n{self.term}"

    def _repr_html_(self) -> str:
        return _html.heading(f"kernel {self.name} computes {', '.join(self.layers)}") + _html.block(self.term)


class Lowered(ABC):
    """What has layers: a model, or a bundle."""

    @abstractmethod
    def _describe(self) -> Any:
        """What `hoist inspect --json` says of the whole."""

    @abstractmethod
    def _stages(self, layer: str, stages: Sequence[str], types: bool) -> Any: ...

    @abstractmethod
    def _explanation(self, layer: str, terms: bool) -> Any: ...

    @cached_property
    def _described(self) -> Any:
        return self._describe()

    @property
    def summary(self) -> Summary:
        """Inputs, outputs, and how much is computed and stored; of a bundle for several sizes with the first of them."""
        return summary_of(self._described)

    @property
    def layers(self) -> Layers:
        """The layers of the model, by position or by name: `model.layers["conv1"].high`."""
        return layers_of(self._described, self)


@dataclass(frozen=True)
class Layer:
    """A layer of the model. What it is at each stage is looked up when it is asked for."""

    name: str
    operator: str
    kernels: tuple[str, ...]  #: that compute it
    absence: str  #: why none does; "" where one does
    _of: Lowered = field(repr=False, compare=False)

    def stages(self, *stages: str, types: bool = False) -> list[Stage]:
        """The layer at these of STAGES, or at all; with the type after each pattern where `types` is true. A bundle has
        neither "high" nor "halide"."""
        for stage in stages:
            if stage not in STAGES:
                raise UsageError([Problem(f"stage {stage}", "is not there", "there are " + ", ".join(STAGES))])
        return [Stage(**stage) for stage in self._of._stages(self.name, stages, types)["stages"]]

    @property
    def high(self) -> str:
        """What the layer means: high-level Lift."""
        return self._text("high")

    @property
    def low(self) -> str:
        """How its kernels compute it: loops, memory, vectors."""
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
        """How its kernels follow from the model, step by step; with the whole term after each where `terms` is true."""
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
        """A name that no layer has is a KeyError."""
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
