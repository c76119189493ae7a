"""hoist_runtime.h for ctypes: its structs, and the types of its functions."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

# The HOIST_API_VERSION of the declarations below.
API_VERSION = 1


Progress = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_size_t, c_char_p)


class Options(ctypes.Structure):
    _fields_ = [
        ("device", c_char_p),
        ("threads", c_int),
        ("separate_buffers", c_int),
        ("no_cache", c_int),
        ("cache_folder", c_char_p),
        ("context_of", c_void_p),
        ("linked_kernels", c_void_p),
        ("progress", Progress),
        ("user", c_void_p),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("scalar", c_char_p),
        ("rank", c_size_t),
        ("shape", POINTER(c_int64)),
        ("bytes", c_size_t),
    ]


class Step(ctypes.Structure):
    _fields_ = [
        ("kernel", c_char_p),
        ("kernel_index", c_int),
        ("layer_count", c_size_t),
        ("layers", POINTER(c_char_p)),
        ("argument_count", c_size_t),
        ("arguments", POINTER(c_uint32)),
        ("operations", c_int64),
        ("on_host", c_int),
    ]


class Device(ctypes.Structure):
    _fields_ = [
        ("platform", c_char * 128),
        ("name", c_char * 256),
        ("driver", c_char * 128),
        ("is_cpu", c_int),
        ("compute_units", c_uint),
    ]


class Specialisation(ctypes.Structure):
    _fields_ = [("size_count", c_size_t), ("names", POINTER(c_char_p)), ("sizes", POINTER(c_int64))]


class Finding(ctypes.Structure):
    _fields_ = [
        ("subject", c_char_p),
        ("passed", c_int),
        ("message", c_char_p),
        ("compared", c_uint64),
        ("largest_error", c_double),
    ]


class Pixels(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("channels", c_size_t),
        ("row_pitch", c_size_t),
        ("blue_first", c_int),
    ]


class Preprocessing(ctypes.Structure):
    _fields_ = [
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("channels", c_size_t),
        ("channels_first", c_int),
        ("blue_first", c_int),
        ("crop", c_int),
        ("resize_rows", c_size_t),
        ("resize_columns", c_size_t),
        ("scale", c_double),
        ("mean", c_double * 3),
        ("deviation", c_double * 3),
    ]


class String(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]


Report = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Finding))

_HANDLE = c_void_p
# The result and the parameters of every function that is called here.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "hoist_api_version": (c_int, []),
    "hoist_devices": (c_int, [POINTER(Device), c_int]),
    "hoist_open": (c_int, [c_char_p, POINTER(Options), POINTER(_HANDLE)]),
    "hoist_close": (None, [_HANDLE]),
    "hoist_error_message": (c_char_p, [_HANDLE]),
    "hoist_model_name": (c_char_p, [_HANDLE]),
    "hoist_device_name": (c_char_p, [_HANDLE]),
    "hoist_device_index": (c_int, [_HANDLE]),
    "hoist_profile_name": (c_char_p, [_HANDLE]),
    "hoist_fits_profile": (c_int, [_HANDLE]),
    "hoist_threads": (c_int, [_HANDLE]),
    "hoist_cache_outcome": (c_char_p, [_HANDLE]),
    "hoist_input_count": (c_size_t, [_HANDLE]),
    "hoist_output_count": (c_size_t, [_HANDLE]),
    "hoist_input": (c_int, [_HANDLE, c_size_t, POINTER(Array)]),
    "hoist_output": (c_int, [_HANDLE, c_size_t, POINTER(Array)]),
    "hoist_set_input": (c_int, [_HANDLE, c_size_t, c_void_p, c_size_t]),
    "hoist_input_memory": (c_int, [_HANDLE, c_size_t, POINTER(c_void_p)]),
    "hoist_output_memory": (c_int, [_HANDLE, c_size_t, POINTER(c_void_p)]),
    "hoist_state_count": (c_size_t, [_HANDLE]),
    "hoist_state": (c_int, [_HANDLE, c_size_t, POINTER(Array)]),
    "hoist_get_state": (c_int, [_HANDLE, c_size_t, c_void_p, c_size_t]),
    "hoist_set_state": (c_int, [_HANDLE, c_size_t, c_void_p, c_size_t]),
    "hoist_reset_states": (c_int, [_HANDLE]),
    "hoist_save_states": (c_int, [_HANDLE, c_char_p]),
    "hoist_load_states": (c_int, [_HANDLE, c_char_p]),
    "hoist_open_session": (c_int, [_HANDLE, c_int, POINTER(_HANDLE)]),
    "hoist_seed_inputs": (c_int, [_HANDLE, c_uint64]),
    "hoist_run": (c_int, [_HANDLE]),
    "hoist_get_output": (c_int, [_HANDLE, c_size_t, c_void_p, c_size_t]),
    "hoist_set_input_strings": (c_int, [_HANDLE, c_size_t, POINTER(String), c_size_t]),
    "hoist_get_output_strings": (c_int, [_HANDLE, c_size_t, POINTER(String), c_size_t]),
    "hoist_set_input_pixels": (c_int, [_HANDLE, c_size_t, POINTER(Pixels), c_size_t]),
    "hoist_input_preprocessing": (c_int, [_HANDLE, c_size_t, POINTER(Preprocessing)]),
    "hoist_output_shape": (c_int, [_HANDLE, c_size_t, POINTER(c_int64), c_size_t]),
    "hoist_specialisation_count": (c_size_t, [_HANDLE]),
    "hoist_specialisation_in_use": (c_size_t, [_HANDLE]),
    "hoist_describe_specialisation": (c_int, [_HANDLE, c_size_t, POINTER(Specialisation)]),
    "hoist_choose": (c_int, [_HANDLE, c_size_t]),
    "hoist_choose_size": (c_int, [_HANDLE, c_char_p, c_int64]),
    "hoist_choose_input_shape": (c_int, [_HANDLE, c_size_t, POINTER(c_int64), c_size_t]),
    "hoist_step_count": (c_size_t, [_HANDLE]),
    "hoist_describe_step": (c_int, [_HANDLE, c_size_t, POINTER(Step)]),
    "hoist_profile": (c_int, [_HANDLE, POINTER(c_double)]),
    "hoist_verify": (c_int, [_HANDLE, Report, c_void_p]),
    "hoist_verify_files": (c_int, [c_char_p, Report, c_void_p, c_char_p, c_size_t]),
}


def declare(library: ctypes.CDLL) -> None:
    """Gives the library's functions their types. Raises AttributeError if one is missing."""
    for name, (result, parameters) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters


def text(raw: bytes | None) -> str:
    """Decodes text of the runtime; names from models may be invalid UTF-8."""
    return (raw or b"").decode("utf-8", "surrogateescape")


def raw(text: str) -> bytes:
    """The inverse of `text`."""
    return text.encode("utf-8", "surrogateescape")
