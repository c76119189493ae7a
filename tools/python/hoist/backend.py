"""ONNX's interface of backends (onnx.backend.base), on hoist: `onnx.backend.test.BackendTest(hoist.backend, __name__)`.

Sequences are lists; an optional without a value is None. Needs the package onnx.
"""

from __future__ import annotations

from typing import Any, Sequence

import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from .errors import Error
from .model import Model
from .session import InferenceSession


class HoistRep(BackendRep):  # type: ignore[misc]  # onnx has no types here
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        names = [each.name for each in self._session.get_inputs()]
        feeds = dict(inputs) if isinstance(inputs, dict) else dict(zip(names, inputs))
        outputs = [each.name for each in self._session.get_outputs()]
        return tuple(namedtupledict("Outputs", outputs)(*self._session.run(None, feeds)))


class HoistBackend(Backend):  # type: ignore[misc]
    """hoist as a backend: native code on the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        try:
            return cls.supports_device(device) and bool(Model(model).check())
        except Error:
            return False

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> HoistRep:
        super().prepare(model, device)
        return HoistRep(InferenceSession(model, options=options))

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[Any] | None = None, **options: Any) -> tuple[Any, ...]:
        helper, type_of = onnx.helper, onnx.numpy_helper.from_array
        given = dict(zip(node.input, inputs)) if not isinstance(inputs, dict) else inputs
        declared = [helper.make_tensor_value_info(name, type_of(array).data_type, array.shape)
                    for name, array in given.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        model = helper.make_model(helper.make_graph([node], "node", declared, results), **options)
        return cls.prepare(onnx.shape_inference.infer_shapes(model), device).run(given)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU


is_compatible = HoistBackend.is_compatible
prepare = HoistBackend.prepare
run_model = HoistBackend.run_model
run_node = HoistBackend.run_node
supports_device = HoistBackend.supports_device
