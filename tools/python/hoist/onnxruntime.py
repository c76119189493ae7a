"""onnxruntime's module, on hoist: `import hoist.onnxruntime as onnxruntime`.

Sessions, values and bindings come from hoist.session; the constants that programs name exist and have no effect.
"""

from __future__ import annotations

import enum
import importlib
import sys
import types
from typing import Any

from . import session
from .session import (Fail, InferenceSession, InvalidArgument, InvalidGraph, InvalidProtobuf, IOBinding, ModelMetadata, NodeArg,
                      NoSuchFile, NotImplemented, OrtValue, RunOptions, SessionOptions)

__version__ = "1.23.0"  #: the version of onnxruntime whose interface this module has

_original: types.ModuleType | None = None


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


def get_available_providers() -> list[str]:
    return ["CPUExecutionProvider"]


get_all_providers = get_available_providers


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return "hoist"


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: messages go to the logger "hoist"."""


set_default_logger_verbosity = set_default_logger_severity


def set_seed(seed: int) -> None:
    """Does nothing: random operators have the seeds of the model."""


def disable_telemetry_events() -> None:
    """Does nothing: hoist sends nothing."""


enable_telemetry_events = disable_telemetry_events


def preload_dlls(*_: Any, **__: Any) -> None:
    """Does nothing: hoist needs no libraries of CUDA."""


def original() -> types.ModuleType | None:
    """The installed onnxruntime, or None."""
    global _original
    if _original is None:
        replaced = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "onnxruntime"}
        try:
            _original = importlib.import_module("onnxruntime")
        except ImportError:
            return None
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "onnxruntime"]:
                if replaced:
                    del sys.modules[name]
            sys.modules.update(replaced)
    return _original


def install() -> None:
    """Puts this module in the place of onnxruntime for all later imports of this process."""
    here = sys.modules[__name__]
    capi = types.ModuleType("onnxruntime.capi")
    state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
    collection = types.ModuleType("onnxruntime.capi.onnxruntime_inference_collection")
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented"):
        setattr(state, name, getattr(session, name))
    for name in ("InferenceSession", "IOBinding", "OrtValue", "SessionOptions"):
        setattr(collection, name, getattr(session, name))
    for name in ("SessionOptions", "RunOptions", "ModelMetadata", "NodeArg", "GraphOptimizationLevel", "ExecutionMode"):
        setattr(state, name, getattr(here, name))
    setattr(capi, "onnxruntime_pybind11_state", state)
    setattr(capi, "_pybind_state", state)
    setattr(capi, "onnxruntime_inference_collection", collection)
    sys.modules.update({"onnxruntime": here, "onnxruntime.capi": capi, "onnxruntime.capi._pybind_state": state,
                        "onnxruntime.capi.onnxruntime_pybind11_state": state,
                        "onnxruntime.capi.onnxruntime_inference_collection": collection})
    globals()["capi"] = capi


__all__ = ["ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InvalidArgument",
           "InvalidGraph", "InvalidProtobuf", "ModelMetadata", "NoSuchFile", "NodeArg", "NotImplemented", "OrtAllocatorType",
           "OrtMemType", "OrtValue", "RunOptions", "SessionOptions", "disable_telemetry_events", "enable_telemetry_events",
           "get_all_providers", "get_available_providers", "get_build_info", "get_device", "get_version_string", "install",
           "original", "preload_dlls", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]
