"""Compares hoist, onnxruntime and ONNX's reference evaluator on values that the standard leaves open: NaN, values outside a
type's range, division by zero, negative zero. Development only.

    build/compare/bin/python tools/compare/numerics.py > numerics.txt

Each case is a model of one node, all of whose inputs are the model's; hoist compiles it and runs it on the first device.
ir/operators/NUMERICS.md contains the table. A case in which hoist differs from both others is marked with an
exclamation mark, and makes the exit code 1 unless its note explains the difference.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import signal
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime

from engines import HOIST, WORK, Failure, Hoist

OPSET = 21
NAN, INF = float("nan"), float("inf")
ZEROS = "-0 comes before 0"
NEAREST = "undefined in the standard; hoist: the nearest number, 0 for NaN"
F16, F32, F64 = np.float16, np.float32, np.float64
I8, I32, I64, U8, U32, U64 = np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64


@dataclass
class Case:
    operator: str
    inputs: list[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)
    result: Any = None  # numpy's type of the output; None: that of the first input
    fixed: tuple[int, ...] = ()  # inputs that are constants of the model
    why: str = ""  # where hoist differs from both others: the reason

    def model(self) -> onnx.ModelProto:
        names = [f"x{place}" for place in range(len(self.inputs))]
        node = onnx.helper.make_node(self.operator, names, ["y"], name="node", **self.attributes)
        values = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                  for place, (name, value) in enumerate(zip(names, self.inputs)) if place not in self.fixed]
        constants = [onnx.numpy_helper.from_array(self.inputs[place], names[place]) for place in self.fixed]
        kind = self.result if self.result is not None else self.inputs[0].dtype
        output = onnx.helper.make_tensor_value_info("y", onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)), None)
        graph = onnx.helper.make_graph([node], "numerics", values, [output], constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    def given(self) -> dict[str, np.ndarray]:
        return {f"x{place}": value for place, value in enumerate(self.inputs) if place not in self.fixed}


def array(kind: Any, *values: float, shape: tuple[int, ...] | None = None) -> np.ndarray:
    out = np.array(values, kind)
    return out.reshape(shape) if shape is not None else out


def scalar(kind: Any, value: float) -> np.ndarray:
    return np.array(value, kind)


def picture(*values: float) -> np.ndarray:
    return array(F32, *values, shape=(1, 1, 1, len(values)))


def cast(to: Any, *values: float, kind: Any = F32) -> Case:
    return Case("Cast", [array(kind, *values)], {"to": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to))}, result=to,
                why=NEAREST)


def quantise(kind: Any, zero: int, *values: float) -> Case:
    return Case("QuantizeLinear", [array(F32, *values), scalar(F32, 0.5), scalar(kind, zero)], result=kind,
                why="as Cast: 0 for NaN")


def cases() -> dict[str, list[Case]]:
    integers = array(I64, 0)
    return {
        "Largest and smallest": [
            Case("Max", [array(F32, NAN, 1, NAN), array(F32, 1, NAN, NAN)]),
            Case("Min", [array(F32, NAN, 1, NAN), array(F32, 1, NAN, NAN)]),
            Case("ReduceMax", [array(F32, 1, NAN, 2), integers], {"keepdims": 1}, fixed=(1,)),
            Case("ReduceMin", [array(F32, 1, NAN, 2), integers], {"keepdims": 1}, fixed=(1,)),
            Case("MaxPool", [picture(1, NAN, 2, 3)], {"kernel_shape": [1, 2]}, why="as ReduceMax"),
            Case("MaxPool", [picture(-INF, -INF)], {"kernel_shape": [1, 2]}),
            Case("MaxPool", [picture(1, -1)], {"kernel_shape": [1, 2], "pads": [0, 2, 0, 2]},
                 why="the largest of nothing"),
            Case("GlobalMaxPool", [picture(1, NAN, 2)]),
            Case("ArgMax", [array(F32, 1, NAN, 2)], {"axis": 0}, result=I64),
            Case("ArgMin", [array(F32, 1, NAN, 2)], {"axis": 0}, result=I64),
            Case("ArgMax", [array(F32, 1, 2, 2)], {"axis": 0}, result=I64),
            Case("Hardmax", [array(F32, 1, NAN, 2)], {"axis": 0}),
            Case("Max", [array(F32, -0.0, 0.0), array(F32, 0.0, -0.0)], why=ZEROS),
            Case("Min", [array(F32, -0.0, 0.0), array(F32, 0.0, -0.0)], why=ZEROS),
            Case("MaxPool", [picture(-0.0, 0.0, -0.0)], {"kernel_shape": [1, 2]}, why=ZEROS),
        ],
        "Clip": [
            Case("Clip", [array(F32, NAN, -1, 5), scalar(F32, 0), scalar(F32, 1)]),
            Case("Clip", [array(F32, -1, 0, 5), scalar(F32, NAN), scalar(F32, 1)]),
            Case("Clip", [array(F32, -1, 0, 5), scalar(F32, 0), scalar(F32, NAN)]),
            Case("Clip", [array(F32, -1, 2, 5), scalar(F32, 3), scalar(F32, 1)]),
            Case("Clip", [array(I32, -1, 2, 5), scalar(I32, 3), scalar(I32, 1)]),
            Case("Clip", [array(F32, -0.0, 0.0), scalar(F32, 0), scalar(F32, 1)], why=ZEROS),
            Case("Clip", [array(F32, -0.0, 0.0), scalar(F32, -0.0), scalar(F32, 1)]),
        ],
        "Activations of NaN": [
            Case(operator, [array(F32, NAN)], attributes)
            for operator, attributes in [
                ("Relu", {}), ("LeakyRelu", {}), ("ThresholdedRelu", {}), ("Elu", {}), ("Selu", {}), ("Celu", {}),
                ("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("HardSigmoid", {}), ("HardSwish", {}),
                ("Shrink", {"lambd": 1.0}), ("Sigmoid", {}), ("Softplus", {}), ("Softsign", {}), ("Mish", {}),
                ("Sign", {}), ("Round", {}), ("Floor", {}), ("Sqrt", {}), ("Abs", {}),
            ]
        ] + [Case("PRelu", [array(F32, NAN), array(F32, 0.5)])],
        "Infinities and negative zero": [
            Case("Gelu", [array(F32, -INF, INF, -3e38)]),
            Case("Gelu", [array(F32, -INF, INF, -3e38)], {"approximate": "tanh"}),
            Case("Mish", [array(F32, -INF, INF, -100)]),
            Case("HardSwish", [array(F32, -INF, INF)]),
            Case("Softplus", [array(F32, -INF, INF, 1000)]),
            Case("Softsign", [array(F32, -INF, INF)]),
            Case("Elu", [array(F32, -INF, INF, -0.0)]),
            Case("Relu", [array(F32, -0.0, -INF, INF)]),
            Case("LeakyRelu", [array(F32, -0.0, -INF, INF)]),
            Case("Sign", [array(F32, -0.0, -INF, INF)]),
            Case("Round", [array(F32, -0.4, 0.5, 1.5, 2.5, -0.5)]),
            Case("Ceil", [array(F32, -0.5)]),
            Case("Neg", [array(F32, 0.0)]),
            Case("Add", [array(F32, -0.0), array(F32, -0.0)]),
            Case("ReduceSum", [array(F32, -0.0, -0.0), integers], {"keepdims": 1}, fixed=(1,)),
            Case("Softmax", [array(F32, -INF, -INF)], {"axis": 0}),
            Case("Softmax", [array(F32, 1, INF)], {"axis": 0}),
            Case("Softmax", [array(F32, 1, NAN)], {"axis": 0}),
            Case("ReduceLogSumExp", [array(F32, -INF, -INF), integers], {"keepdims": 1}, fixed=(1,)),
            Case("Pow", [array(F32, 0, -8, NAN, 1), array(F32, 0, 1 / 3, 0, NAN)]),
            Case("Mod", [array(F32, 5, -5, INF, 5), array(F32, 0, 3, 2, INF)], {"fmod": 1}),
        ],
        "Casts": [
            cast(I32, NAN, INF, -INF, 3e9, -3e9),
            cast(I64, NAN, INF, -INF, 1e19, -1e19),
            cast(I8, NAN, INF, -INF, 200, -200),
            cast(U8, NAN, INF, -INF, 300, -1),
            cast(U32, NAN, INF, -INF, 5e9, -1),
            cast(U64, NAN, INF, -INF, 2e19, -1),
            cast(bool, NAN, -0.0, 0.25, INF),
            cast(I32, 2.9, -2.9),
            cast(I8, 200, -200, 256, kind=I32),
            cast(U8, -1, 300, kind=I64),
            cast(F16, 1e6, -1e6, 65520, 65519, 1e-8),
            cast(F32, 1e300, -1e300, 1e-300, kind=F64),
        ],
        "Quantising": [
            quantise(U8, 128, NAN, INF, -INF, 1e30, -1e30),
            quantise(I8, 0, NAN, INF, -INF, 1e30, -1e30),
            quantise(I8, 0, 0.25, 0.75, 1.25, -0.25),
            Case("QuantizeLinear", [array(F32, 1, -1, 0), scalar(F32, 0), scalar(U8, 128)], result=U8),
        ],
        "Integers": [
            Case("Div", [array(I32, 7, -7, 0), array(I32, 0, 0, 0)]),
            Case("Div", [array(U8, 7, 0), array(U8, 0, 0)]),
            Case("Div", [array(I32, -(2**31)), array(I32, -1)]),
            Case("Div", [array(I32, 7, -7), array(I32, -2, 2)]),
            Case("Mod", [array(I32, 7, -7), array(I32, 0, 0)]),
            Case("Mod", [array(I32, -(2**31)), array(I32, -1)]),
            Case("Mod", [array(I32, 7, -7), array(I32, -3, 3)]),
            Case("Mod", [array(I32, 7, -7), array(I32, -3, 3)], {"fmod": 1}),
            Case("BitShift", [array(U8, 255, 255, 255), array(U8, 7, 8, 200)], {"direction": "LEFT"}),
            Case("BitShift", [array(U8, 255, 255, 255), array(U8, 7, 8, 200)], {"direction": "RIGHT"}),
            Case("BitShift", [array(U32, 5, 5, 5), array(U32, 31, 32, 33)], {"direction": "LEFT"}),
            Case("BitShift", [array(U64, 5, 5, 5), array(U64, 63, 64, 65)], {"direction": "RIGHT"}),
            Case("Pow", [array(I32, 2, 2, 0), array(I32, -1, 31, 0)]),
            Case("Pow", [array(I32, 3, 2), array(F32, 0.5, -1)]),
            Case("Abs", [array(I8, -128)]),
            Case("Neg", [array(I8, -128)]),
            Case("Add", [array(I8, 127), array(I8, 1)]),
            Case("ReduceMean", [array(I32, -1, -2), integers], {"keepdims": 1}, fixed=(1,)),
            Case("ReduceSum", [array(I32, 2**31 - 1, 1), integers], {"keepdims": 1}, fixed=(1,)),
        ],
    }


def reference(case: Case) -> np.ndarray:
    return onnx.reference.ReferenceEvaluator(case.model()).run(None, case.given())[0]


def in_onnxruntime(case: Case) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, case.given())[0]


def apart(function: Any, case: Case, answer: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        answer.send(function(case))
    except Exception as problem:  # any exception is its answer
        # onnxruntime's messages begin with a location in its source.
        answer.send("error: " + re.split(r"Status Message: \S+ \S+ |was false\. ", str(problem).splitlines()[0])[-1])


def answer_of(function: Any, case: Case) -> np.ndarray | str:
    """The result, or the reason why there is none; computed in a separate process, since an engine may end it."""
    receiver, sender = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=apart, args=(function, case, sender))
    process.start()
    sender.close()
    try:
        found: np.ndarray | str = receiver.recv()
    except EOFError:
        process.join()
        found = f"ends the process ({signal.Signals(-process.exitcode).name})" if process.exitcode < 0 else "no answer"
    process.join()
    if isinstance(found, str) and "NOT_IMPLEMENTED" in found:
        return "not implemented"
    return found


def in_hoist(hoist: Hoist, number: int, case: Case) -> np.ndarray | str:
    path = WORK / f"numerics_{number}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model(), path)
    try:
        hoist.compile(path, path.with_suffix(".hoist"), {}, ["--no-check"])
        return hoist.run(path.with_suffix(".hoist"), case.given(), ["y"])["y"]
    except Failure as problem:
        return str(problem).splitlines()[0]


def number_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    value = float(value)
    return "-0" if value == 0 and np.signbit(value) else f"{value:.5g}"


def text(values: np.ndarray | str) -> str:
    return values if isinstance(values, str) else ", ".join(number_text(value) for value in np.asarray(values).flat)


def same(a: np.ndarray | str, b: np.ndarray | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) == isinstance(b, str)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f" and not np.array_equal(np.signbit(a[a == 0]), np.signbit(b[a == 0])):
        return False
    return a.shape == b.shape and bool(np.isclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=a.dtype.kind == "f").all())


def described(case: Case) -> str:
    kind = {"float": "f", "int": "i", "uint": "u", "bool": "b"}
    def short(of: np.dtype) -> str:
        name = of.name.rstrip("0123456789")
        return of.name if name == "bool" else kind[name] + of.name[len(name):]
    options = {name: value for name, value in case.attributes.items() if name not in ("keepdims", "axis", "to")}
    said = "".join(f", {name} {value}" for name, value in options.items())
    to = f" to {short(np.dtype(case.result))}" if case.result is not None and case.operator in ("Cast", "QuantizeLinear") else ""
    shown = [value for place, value in enumerate(case.inputs) if place not in case.fixed]
    return f"{case.operator}{to} of {short(shown[0].dtype)} ({'; '.join(text(value) for value in shown)}){said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", type=Path, default=HOIST, help="the program (default: build/release/hoist)")
    parser.add_argument("--only", default="", help="cases of this operator alone")
    options = parser.parse_args()
    hoist, number, strange = Hoist(options.hoist), 0, 0
    print(f"Measured with onnx {onnx.__version__} and onnxruntime {onnxruntime.__version__}, at opset {OPSET}.")
    for title, group in cases().items():
        print(f"\n## {title}\n| case | hoist | onnxruntime | reference |\n|---|---|---|---|")
        for case in group:
            if options.only and case.operator != options.only:
                continue
            number += 1
            mine = in_hoist(hoist, number, case)
            others = [answer_of(function, case) for function in (in_onnxruntime, reference)]
            alone = not any(same(mine, other) for other in others)
            strange += alone and not case.why
            note = f" ({case.why})" if alone and case.why else ""
            print(f"| {described(case)} | {'**! ' if alone else ''}{text(mine)}{'**' if alone else ''}{note} | "
                  f"{' | '.join(map(text, others))} |", flush=True)
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main())
