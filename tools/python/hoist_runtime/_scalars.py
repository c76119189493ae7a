"""hoist's element types as numpy's."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import Error, Status

try:
    ml_dtypes: Any = importlib.import_module("ml_dtypes")
except ImportError:
    ml_dtypes = None

_NUMPY = {
    "bool": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
    "i64": "int64", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64",
}
# The names of other types in ml_dtypes, and their number of bits.
_SMALL = {
    "bf16": ("bfloat16", 16), "f8e4m3fn": ("float8_e4m3fn", 8), "f8e4m3fnuz": ("float8_e4m3fnuz", 8),
    "f8e5m2": ("float8_e5m2", 8), "f8e5m2fnuz": ("float8_e5m2fnuz", 8), "f8e8m0": ("float8_e8m0fnu", 8),
    "f4e2m1": ("float4_e2m1fn", 4), "i4": ("int4", 4), "u4": ("uint4", 4), "i2": ("int2", 2), "u2": ("uint2", 2),
}


@dataclass(frozen=True)
class ElementType:
    """An element type in numpy and in memory of the runtime."""

    scalar: str
    dtype: np.dtype[Any]
    bits: int
    reason: str  # why elements are raw bits, else ""

    @property
    def is_string(self) -> bool:
        return self.scalar == "string"

    @property
    def is_packed(self) -> bool:
        return self.bits < 8

    def packed(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array with the bytes of an array of `dtype` in the runtime's form: small elements are packed, lowest bits first."""
        whole = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if not self.is_packed:
            return whole
        codes = whole.reshape(-1).view(np.uint8) & (2**self.bits - 1)
        each_byte = 8 // self.bits
        codes = np.pad(codes, (0, -codes.size % each_byte)).reshape(-1, each_byte)
        out = np.zeros(codes.shape[0], np.uint8)
        for place in range(each_byte):
            out |= codes[:, place] << np.uint8(place * self.bits)
        return out

    def unpacked(self, held: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """An array of `dtype` from an array with the runtime's bytes."""
        if not self.is_packed:
            numbers = held if held.dtype == self.dtype else held.view(self.dtype)
            return numbers if numbers.shape == shape else numbers.reshape(shape)
        each_byte = 8 // self.bits
        shifts = np.arange(each_byte, dtype=np.uint8) * np.uint8(self.bits)
        codes = (held[:, None] >> shifts & np.uint8(2**self.bits - 1)).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
        if not self.reason and self.scalar.startswith("i"):
            # ml_dtypes may or may not sign-extend the byte.
            sign = np.uint8(2 ** (self.bits - 1))
            signed: NDArray[Any] = ((codes ^ sign) - sign).view(np.int8)
            return signed.astype(self.dtype).reshape(shape)
        return np.ascontiguousarray(codes).view(self.dtype).reshape(shape)


def element_type(scalar: str) -> ElementType:
    """The element type of hoist's name. Types that numpy lacks come from ml_dtypes if it is installed; otherwise elements
    are bits. Raises Error for an unknown type of a newer runtime."""
    if scalar == "string":
        return ElementType(scalar, np.dtype(object), 64, "")
    if scalar in _NUMPY:
        dtype: np.dtype[Any] = np.dtype(_NUMPY[scalar])
        return ElementType(scalar, dtype, 8 * dtype.itemsize, "")
    if scalar not in _SMALL:
        raise Error(Status.BAD_BUNDLE, f"this package does not know the element type {scalar}")
    name, bits = _SMALL[scalar]
    if hasattr(ml_dtypes, name):
        return ElementType(scalar, np.dtype(getattr(ml_dtypes, name)), bits, "")
    missing = "is not installed" if ml_dtypes is None else f"{ml_dtypes.__version__} has no {name}"
    return ElementType(scalar, np.dtype(np.uint16 if bits == 16 else np.uint8), bits,
                       f"numpy has no {scalar} and ml_dtypes {missing}: the bits of each element")


def from_anything(given: Any, kind: ElementType, name: str) -> NDArray[Any]:
    """Converts the value of an input to an array of the input's type.

    numpy arrays and objects with __array__ or __dlpack__ must have that type, in any byte order; lists
    and numbers are converted. Raises TypeError with the way out; strings stay as they are, see strings_of.
    """
    if kind.is_string:
        return np.asarray(given, dtype=object)
    if isinstance(given, np.ndarray):
        array = given
    elif hasattr(given, "__array__"):
        array = np.asarray(given)
    elif hasattr(given, "__dlpack__"):
        array = np.from_dlpack(given)
    else:
        return np.asarray(given, dtype=kind.dtype)
    if array.dtype == kind.dtype:
        return array
    if array.dtype.newbyteorder("=") != kind.dtype:
        reason = f" ({kind.reason})" if kind.reason else ""
        raise TypeError(f"input {name} holds {kind.dtype.name}, not {array.dtype.name}{reason}: "
                        f"array.astype({kind.dtype.name!r}) converts")
    return array.astype(kind.dtype, copy=False)


def strings_of(array: NDArray[Any], name: str) -> list[bytes]:
    """The elements as bytes, outermost extent first; text becomes UTF-8. Raises TypeError for an element that is not a string."""
    out = []
    for element in array.reshape(-1).tolist():
        if isinstance(element, str):
            out.append(element.encode("utf-8", "surrogateescape"))
        elif isinstance(element, bytes):
            out.append(element)
        else:
            raise TypeError(f"input {name} holds strings, not {type(element).__name__}: {element!r}")
    return out
