"""hoist, the compiler of neural networks, in Python: the core of the program, with numpy arrays.

    import hoist
    model = hoist.load("digits.onnx")
    model.check()                                  # can it be compiled?
    model.layers["conv1"].high                     # the meaning of a layer
    bundle = model.compile("digits.hoist", target="native")
    [logits] = bundle.run(image=array)
    study = model.choose("top1=0.5%", calibrate={"image": images, "labels": labels})
    study.compile("small.hoist")

Options have the names of the program's, with _ for -. Failures are exceptions (hoist.Error) with where, what and hint; notes
and warnings go to the logger "hoist". Long calls release Python's lock, and Ctrl-C ends them.
"""

from __future__ import annotations

from typing import Any

from . import _halide

_halide.load()

from . import _core, runtime  # noqa: E402
from ._call import Answer, command, set_progress  # noqa: E402
from .bundle import Bundle, Evaluation, Finding, open  # noqa: E402
from .errors import (BudgetError, DeviceError, Error, InputError, MismatchError, Problem, UsageError)  # noqa: E402
from .ir import STAGES, Derivation, Kernel, Layer, Layers, Program, Proof, Stage, Step, Summary, Value  # noqa: E402
from .model import Check, Model, OperatorUse, load  # noqa: E402
from .study import Point, Study  # noqa: E402
from .training import Epoch, Judgement, Training  # noqa: E402

__version__ = _core.version


def _listed(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = command(name, "--json", "-").json
    return found


def devices() -> list[dict[str, Any]]:
    """The OpenCL devices, as `hoist devices --json` writes them."""
    return _listed("devices")


def rules() -> list[dict[str, Any]]:
    """The rules with both sides, as `hoist rules --json` writes them."""
    return _listed("rules")


def operators() -> list[dict[str, Any]]:
    """The operators and their coverage, as `hoist operators --json` writes them."""
    return _listed("operators")


__all__ = ["STAGES", "Answer", "BudgetError", "Bundle", "Check", "Derivation", "DeviceError", "Epoch", "Error",
           "Evaluation", "Finding", "InputError", "Judgement", "Kernel", "Layer", "Layers", "MismatchError", "Model",
           "OperatorUse", "Point", "Problem", "Program", "Proof", "Stage", "Step", "Study", "Summary", "Training",
           "UsageError", "Value", "command", "devices", "load", "open", "operators", "rules", "runtime", "set_progress"]
