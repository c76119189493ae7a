"""Runs the bundles that hoist makes of neural networks: numpy arrays in and out, over the C runtime.

    import hoist_runtime
    with hoist_runtime.open("digits.hoist") as bundle:
        print(bundle.inputs, bundle.outputs, bundle.device)
        [logits] = bundle.run(image=array)
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from ._findings import Finding
from .bundle import Array, Bundle, Device, Preprocessing, Step, devices, open, verify_files
from .errors import ArgumentError, Error, Status, VerificationError

try:
    __version__ = _version("hoist-runtime")
except _PackageNotFoundError:
    __version__ = "0"  # used from the source tree, which pip has not installed

__all__ = ["ArgumentError", "Array", "Bundle", "Device", "Error", "Finding", "Preprocessing", "Status", "Step",
           "VerificationError", "devices", "open", "verify_files"]
