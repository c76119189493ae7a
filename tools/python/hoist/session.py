"""The session of onnxruntime, on hoist: the same calls, with a bundle for each set of sizes, compiled at its first use.

A bundle stays in a cache on disk (`${XDG_CACHE_HOME:-~/.cache}/hoist/sessions`), named by the content of the model, the sizes
and the options, so that later processes compile nothing. Needs the package onnx, which reads the model's interface.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import re
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _core, runtime
from .bundle import Bundle
from .errors import Error, InputError
from .model import Model

logger = logging.getLogger("hoist")
FileName = Union[str, "os.PathLike[str]"]


class Fail(RuntimeError):
    """A call that failed; base class of the others here."""


class InvalidArgument(Fail, ValueError):
    """Names, types or shapes that do not fit the model."""


class InvalidGraph(Fail):
    """A model with errors."""


class InvalidProtobuf(Fail):
    """A file that is not a model."""


class NoSuchFile(Fail):
    """A missing file."""


class NotImplemented(Fail):  # the name of onnxruntime
    """A model, or a part of the interface, that hoist does not support."""


class NodeArg:
    """An input or output: `shape` has integers, names of open dimensions, and None; `type` is "tensor(float)" or similar."""

    rank_known = True

    def __init__(self, name: str, kind: str, shape: list[int | str | None]) -> None:
        self.name, self.type, self.shape = name, kind, shape

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """The model's description of itself."""

    def __init__(self, model: Any) -> None:
        self.producer_name, self.graph_name = model.producer_name, model.graph.name
        self.domain, self.description = model.domain, model.doc_string
        self.graph_description, self.version = model.graph.doc_string, model.model_version
        self.custom_metadata_map = {each.key: each.value for each in model.metadata_props}


class SessionOptions:
    """Options of a session. hoist uses `intra_op_num_threads`; other attributes are kept and have no effect."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.free_dimensions: dict[str, int] = {}
        self.entries: dict[str, str] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self.free_dimensions[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self.entries[key]

    def register_custom_ops_library(self, path: str) -> None:
        raise NotImplemented(f"{path}: hoist loads no libraries of operators")


class RunOptions(SessionOptions):
    """Options of a run, which have no effect."""


class OrtValue:
    """A tensor of a binding, in memory of the host."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        return OrtValue(np.ascontiguousarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0) -> OrtValue:
        return OrtValue(np.zeros(shape, element_type))

    def numpy(self) -> NDArray[Any]:
        return self._array

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return f"tensor({_element(self._array.dtype)})"

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return True

    def has_value(self) -> bool:
        return True

    def update_inplace(self, array: Any) -> None:
        self._array[...] = array


class IOBinding:
    """Inputs and outputs of run_with_iobinding, in memory of the host."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self.inputs: dict[str, Any] = {}
        self.wanted: dict[str, OrtValue | None] = {}
        self.results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self.inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self.inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        if buffer_ptr is not None or device_type != "cpu":
            raise NotImplemented("outputs are bound to memory of the host that hoist allocates, or to an OrtValue")
        self.wanted[name] = None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self.wanted[name] = value

    def run(self) -> None:
        arrays = self._session.run(list(self.wanted) or None, self.inputs)
        self.results = [OrtValue(array) for array in arrays]
        for bound, result in zip(self.wanted.values(), self.results):
            if bound is not None:
                bound.update_inplace(result.numpy())

    def get_outputs(self) -> list[OrtValue]:
        return self.results

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        return [value.numpy() for value in self.results]

    def clear_binding_inputs(self) -> None:
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        self.wanted.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing: transfers are part of a run."""

    synchronize_outputs = synchronize_inputs


def _element(dtype: np.dtype[Any]) -> str:
    """onnxruntime's name of an element type."""
    if dtype.kind in "OUS":
        return "string"
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name.replace("_", ""))


def cache_folder() -> Path:
    """The folder of the bundles that sessions compile."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(home if home.startswith("/") else Path.home() / ".cache") / "hoist" / "sessions"


def _type_name(given: Any) -> str:
    onnx = importlib.import_module("onnx")
    kind = given.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({_type_name(given.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_name(given.optional_type.elem_type)})"
    name_of = onnx.TensorProto.DataType.Name
    if kind == "map_type":
        return f"map({name_of(given.map_type.key_type).lower()},{_type_name(given.map_type.value_type)})"
    return f"tensor({name_of(given.tensor_type.elem_type).lower()})"


def _node_arg(value: Any) -> NodeArg:
    """An input or output. The shape of a sequence or an optional is that of a member; `rank_known` says if it has one."""
    held = value.type
    while held.WhichOneof("value") in ("sequence_type", "optional_type"):
        held = (held.sequence_type if held.HasField("sequence_type") else held.optional_type).elem_type
    # Some exporters write -1 for a size that is open.
    shape = [dimension.dim_value if dimension.HasField("dim_value") and dimension.dim_value >= 0 else
             dimension.dim_param or None for dimension in held.tensor_type.shape.dim]
    made = NodeArg(value.name, _type_name(value.type), shape)
    made.rank_known = held.tensor_type.HasField("shape")
    return made


class _Interface:
    """The inputs, outputs and description of a model, without its weights."""

    def __init__(self, source: bytes | Path) -> None:
        onnx = importlib.import_module("onnx")
        try:
            model = (onnx.load_model_from_string(source) if isinstance(source, bytes)
                     else onnx.load(str(source), load_external_data=False))
        except Exception as problem:  # protobuf's and onnx's own
            raise InvalidProtobuf(f"{source if isinstance(source, Path) else 'the bytes'}: no ONNX model: {problem}") from None
        stored = {each.name for each in model.graph.initializer}
        stored |= {each.values.name for each in model.graph.sparse_initializer}
        self.metadata = ModelMetadata(model)
        self.inputs = [_node_arg(each) for each in model.graph.input if each.name not in stored]
        self.overridable = [_node_arg(each) for each in model.graph.input if each.name in stored]
        self.outputs = [_node_arg(each) for each in model.graph.output]
        self.keys = {node.output[0]: _keys(node) for node in model.graph.node if node.op_type == "ZipMap"}
        external = [each.value for tensor in model.graph.initializer for each in tensor.external_data
                    if each.key == "location"]
        self.external = sorted(set(external))


def _keys(node: Any) -> list[Any]:
    for attribute in node.attribute:
        if attribute.name == "classlabels_strings" and attribute.strings:
            return [each.decode() for each in attribute.strings]
        if attribute.name == "classlabels_int64s" and attribute.ints:
            return list(attribute.ints)
    return []


class InferenceSession:
    """A model that runs at any sizes: `session.run(None, {"image": array})`.

    path_or_bytes: the file, or its bytes.
    providers: accepted for compatibility; kernels are native code unless `target` is "opencl".
    fallback: a model that hoist refuses runs with an installed onnxruntime, with a warning that has the reason.
    target, options: as Model.compile has them; `threads` as in SessionOptions.intra_op_num_threads.

    Threads may share a session. Raises NoSuchFile, InvalidProtobuf, InvalidGraph or NotImplemented for the model, and
    InvalidArgument for inputs.
    """

    def __init__(self, path_or_bytes: FileName | bytes | Any, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None, *,
                 target: str = "native", fallback: bool = False, options: Mapping[str, Any] | None = None,
                 **_ignored: Any) -> None:
        if hasattr(path_or_bytes, "SerializeToString"):
            path_or_bytes = path_or_bytes.SerializeToString()
        self._source: bytes | Path = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(path_or_bytes)
        if isinstance(self._source, Path) and not self._source.is_file():
            raise NoSuchFile(f"{self._source} does not exist")
        self._sess_options = sess_options or SessionOptions()
        self._options = {**({} if target == "opencl" else {"target": target}), **(options or {})}
        self._interface = _Interface(self._source)
        self._outputs = [each.name for each in self._interface.outputs]
        self._identity = self._digest()
        self._fallback = fallback
        self._other: Any = None  # onnxruntime's session
        self._lock = threading.Lock()
        self._bundles: dict[Any, Bundle] = {}
        self._decisive: list[str] = []  # inputs whose values determine shapes
        self._compile_what_is_known()

    # The interface of onnxruntime

    def get_inputs(self) -> list[NodeArg]:
        return self._interface.inputs

    def get_outputs(self) -> list[NodeArg]:
        return self._interface.outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self._interface.overridable

    def get_modelmeta(self) -> ModelMetadata:
        return self._interface.metadata

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {"CPUExecutionProvider": {}}

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Does nothing, see the class."""

    disable_fallback = enable_fallback = end_profiling = set_providers

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, binding: IOBinding, run_options: Any = None) -> None:
        binding.run()

    def run_with_ort_values(self, output_names: Sequence[str] | None, feeds: Mapping[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        arrays = self.run(output_names, {name: value.numpy() for name, value in feeds.items()})
        return [OrtValue(array) for array in arrays]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: Any = None) -> list[Any]:
        """Runs and returns the named outputs; None: all outputs. The first run at new sizes compiles a bundle for them."""
        for name in output_names or ():
            if name not in self._outputs:
                raise InvalidArgument(f"Invalid output name: {name} (there are: {', '.join(self._outputs)})")
        if self._other is None:
            given, sizes = self._checked(input_feed)
            bundle = self._bundle(given, sizes)
            if bundle is not None:
                return self._results(bundle, given, output_names or list(self._outputs))
        found: list[Any] = self._other.run(output_names, input_feed, run_options)
        return found

    def _results(self, bundle: Bundle, given: Mapping[str, NDArray[Any]], names: Sequence[str]) -> list[Any]:
        inputs = {name: array for name, array in given.items() if name not in self._decisive}
        try:
            results = bundle.opened.run(inputs)
        except runtime.ArgumentError as problem:
            raise InvalidArgument(problem.message) from None
        by_name = dict(zip((port.name for port in bundle.opened.outputs), results))
        return [self._result(name, by_name) for name in names]

    # Sizes

    def _checked(self, feed: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
        """The inputs by the names that bundles have, and the sizes of open dimensions."""
        inputs = self._interface.inputs
        missing = [each.name for each in inputs if each.name not in feed]
        if missing:
            raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        names = {each.name for each in inputs}
        for name in feed:
            if name not in names:
                raise InvalidArgument(f"Invalid input name: {name} (there are: {', '.join(sorted(names))})")
        given: dict[str, NDArray[Any]] = {}
        sizes = dict(self._sess_options.free_dimensions)
        for each in inputs:
            value = feed[each.name]
            if each.type.startswith("tensor"):
                given[each.name] = self._array(each, value.numpy() if isinstance(value, OrtValue) else value, sizes)
                continue
            members = [] if value is None else list(value) if "seq(" in each.type else [value]
            sizes[each.name] = len(members)
            for i, member in enumerate(members):
                name = f"{each.name}.{i}" if "seq(" in each.type else each.name
                declared = NodeArg(name, re.sub(r".*(tensor\(\w+\)).*", r"\1", each.type), each.shape)
                if not each.rank_known:
                    declared.shape = [None] * np.ndim(member)
                given[name] = self._array(declared, member, sizes)
        return given, sizes

    @staticmethod
    def _array(declared: NodeArg, value: Any, sizes: dict[str, int]) -> NDArray[Any]:
        array = np.asarray(value)
        name = declared.name
        if declared.type not in (f"tensor({_element(array.dtype)})", "tensor(undefined)"):
            raise InvalidArgument(f"Unexpected input data type. Actual: {array.dtype.name}, expected: {declared.type} ({name})")
        if len(declared.shape) != array.ndim:
            raise InvalidArgument(f"Invalid rank for input: {name} Got: {array.ndim} Expected: {len(declared.shape)}")
        for axis, (dimension, extent) in enumerate(zip(declared.shape, array.shape)):
            if isinstance(dimension, int):
                if dimension != extent:
                    raise InvalidArgument(f"Got invalid dimensions for input: {name} for the following indices index: "
                                          f"{axis} Got: {extent} Expected: {dimension}")
            elif dimension is None or sizes.setdefault(dimension, extent) != extent:
                # A dimension without a name, or one name for two sizes, which the standard permits as a hint.
                sizes[f"{name}.{axis}"] = extent
        return array

    def _compile_what_is_known(self) -> None:
        """Refuses an invalid model with fixed sizes when the session is made, as onnxruntime does."""
        inputs = self._interface.inputs
        if all(each.type.startswith("tensor") for each in inputs) and \
                all(isinstance(extent, int) for each in inputs for extent in each.shape):
            self._bundle(None, dict(self._sess_options.free_dimensions))

    # Bundles

    def _bundle(self, given: Mapping[str, NDArray[Any]] | None, sizes: Mapping[str, int]) -> Bundle | None:
        """The bundle for these sizes; None if onnxruntime runs the model.

        `given` is None before the first run: then the result is also None if an input's value is missing.
        """
        with self._lock:
            while self._other is None:
                values = {name: given[name] for name in self._decisive if given is not None}
                key = (tuple(sizes.items()), tuple((name, array.tobytes()) for name, array in values.items()))
                if key in self._bundles:
                    return self._bundles[key]
                try:
                    self._bundles[key] = self._compiled(sizes, values)
                except Error as problem:
                    wanted = self._wanted_values(problem)
                    if not wanted:
                        self._refuse(problem)
                    elif given is None:
                        break
                    self._decisive += wanted
            return None

    def _wanted_values(self, problem: Error) -> list[str]:
        """The inputs whose values are missing at compile time, as the hints of the compiler name them."""
        text = "\n".join(f"{each.what} {each.hint}" for each in problem.problems)
        known = {each.name for each in self._interface.inputs} - set(self._decisive)
        return sorted(known & set(re.findall(r"--value ([^\s=]+)=", text)))

    def _refuse(self, problem: Error) -> None:
        if not self._fallback:
            raise NotImplemented(str(problem)) from problem
        original = importlib.import_module("hoist.onnxruntime").original()
        if original is None:
            raise NotImplemented(f"{problem}\n(no onnxruntime is installed to fall back to)") from problem
        warnings.warn(f"onnxruntime runs the model, since hoist refuses it: {problem}", RuntimeWarning, stacklevel=4)
        source = self._source if isinstance(self._source, bytes) else str(self._source)
        self._other = original.InferenceSession(source, providers=["CPUExecutionProvider"])

    def _digest(self) -> str:
        """A hash of the model, hoist's version and the options; external data count by size and time of change."""
        digest = hashlib.sha256(_core.version.encode())
        if isinstance(self._source, bytes):
            digest.update(self._source)
        else:
            with open(self._source, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            for location in self._interface.external:
                state = (self._source.parent / location).stat()
                digest.update(f"{location} {state.st_size} {state.st_mtime_ns}".encode())
        digest.update(repr(sorted(self._options.items())).encode())
        return digest.hexdigest()

    def _compiled(self, sizes: Mapping[str, int], values: Mapping[str, NDArray[Any]]) -> Bundle:
        digest = hashlib.sha256(self._identity.encode())
        digest.update(repr(sorted(sizes.items())).encode())
        for name, array in values.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        folder = cache_folder() / f"{digest.hexdigest()[:32]}.hoist"
        found = self._cached(folder)
        if found is not None:
            return found
        begin = time.monotonic()
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            Model(self._source, dim=dict(sizes), value=dict(values)).compile(folder, force=folder.is_dir(), **self._options)
        except Error:
            found = self._cached(folder)  # another process may have finished first
            if found is None:
                raise
            return found
        logger.info("compiled a bundle for %s in %.1f s", dict(sizes) or "the model", time.monotonic() - begin)
        return Bundle(folder, threads=self._sess_options.intra_op_num_threads)

    def _cached(self, folder: Path) -> Bundle | None:
        """The bundle of the folder, opened; None if there is none, or one of another format."""
        if not folder.is_dir():
            return None
        bundle = Bundle(folder, threads=self._sess_options.intra_op_num_threads)
        try:
            _ = bundle.opened
        except InputError as problem:
            logger.info("%s", problem)
            return None
        return bundle

    def _result(self, name: str, by_name: Mapping[str, NDArray[Any]]) -> Any:
        keys = self._interface.keys.get(name)
        if keys:
            return [dict(zip(keys, row.tolist())) for row in by_name[name]]
        if name in by_name:
            return by_name[name]
        members = [by_name[f"{name}.{i}"] for i in range(len(by_name)) if f"{name}.{i}" in by_name]
        kind = next(each.type for each in self._interface.outputs if each.name == name)
        if not kind.startswith("optional"):
            return members
        return (members or None) if "seq(" in kind else members[0] if members else None
