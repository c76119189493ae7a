"""An opened bundle."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import warnings
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _c, _library
from ._findings import Finding
from ._scalars import ElementType, element_type, from_anything, strings_of
from .errors import ArgumentError, Error, Status, VerificationError, error_of

FolderName = Union[str, "os.PathLike[str]"]
# Parts that the driver has compiled, all parts, and the kernel that is next, "" for none.
DriverProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Array:
    """An input, an output or a state."""

    name: str
    scalar: str  #: hoist's name of the element type: "f32", "i8", "bf16", "string", ...
    shape: tuple[int, ...]  #: outermost extent first; the upper bound for a dynamic output
    dtype: np.dtype[Any]  #: the dtype of its numpy arrays; object for strings
    reason: str = ""  #: the reason if `dtype` is an integer with the bits of each element; else ""


@dataclass(frozen=True)
class Step:
    """One step of a run: a launched kernel or a host op."""

    kernel: str
    layers: tuple[str, ...]  #: the model's layers that it computes
    operations: int  #: arithmetic operations
    on_host: bool
    seconds: float | None = None  #: set by profile() only


@dataclass(frozen=True)
class Device:
    """An OpenCL device. open(device=...) accepts `index` or a name."""

    index: int
    name: str
    platform: str
    driver: str
    is_cpu: bool
    compute_units: int


@dataclass(frozen=True)
class Preprocessing:
    """Image preprocessing of an input: resized, cropped around the middle, (value * scale - mean) / deviation of each value from
    0 to 255, colours and channels in the input's order."""

    rows: int  #: of the input
    columns: int
    channels: int  #: 1 (grey) or 3
    channels_first: bool  #: the input is [channels][rows][columns], else [rows][columns][channels]
    blue_first: bool  #: the input's channels are blue, green, red
    resize: tuple[int, int] | int | None  #: (rows, columns), or the shorter side; None: to rows and columns
    crop: bool  #: pixels beyond the input are cut off; False: there must be none
    scale: float
    mean: tuple[float, ...]  #: one per channel, in the order of the input
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class _Port:
    """An input, an output or a state as the runtime describes it."""

    index: int
    kind: str  # "input", "output" or "state"
    array: Array
    element: ElementType
    bytes: int
    extents: Any  # memory for the actual shape of an output


_Nothing = ctypes.c_char * 0


def _address(array: NDArray[Any]) -> int:
    """The address of the elements of a contiguous array. `array.ctypes.data` takes longer than a call of the runtime, and is
    for read-only arrays and types without a buffer."""
    try:
        return ctypes.addressof(_Nothing.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return int(array.ctypes.data)


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError:
        return Status.DEVICE_ERROR


def _finding(given: Any) -> Finding:
    said = given.contents
    return Finding(_c.text(said.subject), bool(said.passed), _c.text(said.message), said.compared, said.largest_error)


def _image(given: Any, name: str) -> NDArray[np.uint8]:
    """Converts to [rows][columns][channels] with contiguous rows."""
    array = np.asarray(given)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise ArgumentError(Status.BAD_ARGUMENT, f"input {name} takes images of uint8, [rows][columns][channels], not "
                                                 f"{array.dtype.name} of {array.ndim} dimensions")
    if array.ndim == 2:
        array = array[:, :, None]
    rows_apart = array.strides[0] >= array.shape[1] * array.shape[2]
    if array.strides[1:] != (array.shape[2], 1) or not rows_apart:
        array = np.ascontiguousarray(array)
    return array


def _shape(extents: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(len(extents), 1))(*extents)


@dataclass
class _Reports:
    """Collects findings; an exception of the caller's function is raised after C has returned."""

    function: Callable[[Finding], None] | None
    findings: list[Finding] = field(default_factory=list)
    raised: BaseException | None = None

    def callback(self) -> Any:
        def receive(_user: Any, given: Any) -> None:
            try:
                self.findings.append(_finding(given))
                if self.function is not None and self.raised is None:
                    self.function(self.findings[-1])
            except BaseException as problem:  # even Ctrl-C: nothing may pass through C
                self.raised = self.raised or problem

        return _c.Report(receive)


class _Handle:
    """A handle of the runtime. It is closed when neither a Bundle nor a view of its memory refers to it."""

    def __init__(self, library: ctypes.CDLL, pointer: ctypes.c_void_p) -> None:
        self.library = library
        self.pointer = pointer
        self.close = weakref.finalize(self, library.hoist_close, pointer)
        # No close at program exit, because drivers may be unloaded by then.
        self.close.atexit = False


class _Memory:
    """Memory of a handle for numpy, whose arrays keep this object and so the handle."""

    def __init__(self, handle: _Handle, address: int, size: int, writable: bool) -> None:
        self.handle = handle
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, not writable)}


class Bundle:
    """A bundle on a device, or as native code. Made by open(); a context manager that closes it.

    Threads may share a bundle: each call holds a lock, run() from its first input to its last output. Separate bundles run
    in parallel, because the runtime releases Python's lock.
    """

    def __init__(self, folder: FolderName, *, device: str | int | None = None, threads: int = 0, cache: bool = True,
                 cache_folder: FolderName | None = None, context_of: Bundle | None = None,
                 separate_buffers: int = 0, progress: DriverProgress | None = None) -> None:
        """See open()."""
        self._handle: _Handle | None = None
        self._lock = threading.RLock()
        self._described: dict[tuple[str, int], dict[str, _Port]] = {}
        self._folder = Path(folder)
        # A shared context is one of the same library.
        other = None if context_of is None else context_of._opened()
        library = _library.load(self._folder) if other is None else other.library
        options = _c.Options(
            device=None if device is None else _c.raw(str(device)), threads=threads, separate_buffers=separate_buffers,
            no_cache=0 if cache else 1, cache_folder=None if cache_folder is None else os.fsencode(cache_folder),
            context_of=None if other is None else other.pointer, linked_kernels=None)
        if progress is not None:
            # The handle calls it while it is open, when a specialisation is chosen for the first time.
            tell = progress
            self._progress = options.progress = _c.Progress(lambda _, done, total, kernel: tell(done, total, _c.text(kernel)))
        pointer = ctypes.c_void_p()
        status = library.hoist_open(os.fsencode(self._folder), ctypes.byref(options), ctypes.byref(pointer))
        self._take(library, status, pointer)
        if not self.fits_profile:
            warnings.warn(f"{self._folder} is compiled for {self.profile_name}: on {self.device} results are right, and a run may take "
                          "far longer", RuntimeWarning, stacklevel=3)

    def _take(self, library: ctypes.CDLL, status: int, pointer: ctypes.c_void_p) -> None:
        """Takes over a handle that has just been opened. Raises Error if that failed."""
        if status != Status.OK:
            message = _c.text(library.hoist_error_message(pointer)) if pointer else "no memory"
            library.hoist_close(pointer)
            raise error_of(_status(status), message)
        self._handle = _Handle(library, pointer)
        self._library = library
        self._has_sizes = library.hoist_specialisation_count(pointer) > 1

    def session(self, threads: int = 0) -> Bundle:
        """Another session of the bundle, with inputs, outputs and states of its own; both share weights and kernels, and
        either may be closed first. threads: as for open(); 0: as this bundle."""
        with self._lock:
            handle = self._opened()
            out = Bundle.__new__(Bundle)
            out._handle, out._lock, out._described, out._folder = None, threading.RLock(), {}, self._folder
            pointer = ctypes.c_void_p()
            status = self._library.hoist_open_session(handle.pointer, threads, ctypes.byref(pointer))
            out._take(self._library, status, pointer)
            return out

    def close(self) -> None:
        """Ends the use of the bundle; again does nothing. Its memory stays until the last view of it (input_memory,
        output_memory) is gone as well."""
        with self._lock:
            self._handle = None

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self) -> Bundle:
        self._opened()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<hoist_runtime.Bundle {str(self._folder)!r}, closed>"
        inputs, outputs = (", ".join(f"{array.name} {array.scalar}{list(array.shape)}" for array in arrays)
                           for arrays in (self.inputs, self.outputs))
        return f"<hoist_runtime.Bundle {self.model} on {self.device}: {outputs} from {inputs}>"

    # Properties

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def manifest(self) -> dict[str, Any]:
        """The bundle's manifest.json, read on each access: kernels, steps, layers, arrays, and the certificate of a budget."""
        self._opened()
        path = self._folder / "manifest.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise Error(Status.BAD_BUNDLE, f"{path}: {problem}") from None
        if not isinstance(manifest, dict):
            raise Error(Status.BAD_BUNDLE, f"{path} is not an object")
        return manifest

    @property
    def model(self) -> str:
        """The model's name."""
        return self._text("hoist_model_name")

    @property
    def device(self) -> str:
        """The name of the device in use, or of the native code's target."""
        return self._text("hoist_device_name")

    @property
    def device_index(self) -> int | None:
        """The position of the device in devices(); None for native code."""
        index = self._number("hoist_device_index")
        return None if index < 0 else index

    @property
    def profile_name(self) -> str:
        """The name of the profile that the bundle is compiled for."""
        return self._text("hoist_profile_name")

    @property
    def fits_profile(self) -> bool:
        """True if the device is of the kind that the bundle is compiled for. open() warns if it is not."""
        return self._number("hoist_fits_profile") != 0

    @property
    def threads(self) -> int:
        """Compute units of the device in use."""
        return self._number("hoist_threads")

    @property
    def cache_outcome(self) -> str:
        """The outcome of the kernel cache: "hit" or "miss: REASON"; native code has none."""
        return self._text("hoist_cache_outcome")

    @property
    def inputs(self) -> list[Array]:
        """The inputs of the specialisation in use."""
        with self._lock:
            return [port.array for port in self._ports("input").values()]

    @property
    def outputs(self) -> list[Array]:
        """The outputs of the specialisation in use."""
        with self._lock:
            return [port.array for port in self._ports("output").values()]

    @property
    def states(self) -> list[Array]:
        """The values of the specialisation in use that live between runs. Each run reads them and gives them their next
        value."""
        with self._lock:
            return [port.array for port in self._ports("state").values()]

    @property
    def steps(self) -> list[Step]:
        """The steps of a run, in order."""
        with self._lock:
            handle = self._opened()
            out = []
            for index in range(self._library.hoist_step_count(handle.pointer)):
                step = _c.Step()
                self._call("hoist_describe_step", index, ctypes.byref(step))
                out.append(Step(_c.text(step.kernel), tuple(_c.text(step.layers[i]) for i in range(step.layer_count)),
                                step.operations, bool(step.on_host)))
            return out

    # Sizes

    @property
    def specialisations(self) -> list[dict[str, int]]:
        """The sizes that the bundle is compiled for, by name; one empty dictionary if there is only one specialisation."""
        with self._lock:
            handle = self._opened()
            out = []
            for index in range(self._library.hoist_specialisation_count(handle.pointer)):
                one = _c.Specialisation()
                self._call("hoist_describe_specialisation", index, ctypes.byref(one))
                out.append({_c.text(one.names[i]): int(one.sizes[i]) for i in range(one.size_count)})
            return out

    @property
    def specialisation(self) -> dict[str, int]:
        """The specialisation in use: after open() the first."""
        with self._lock:
            return self.specialisations[self._number("hoist_specialisation_in_use")]

    def choose(self, **sizes: int) -> None:
        """Uses the specialisation that has these sizes; the others stay unchanged. Its inputs and outputs are its own: set
        the inputs after the choice. run() chooses automatically. Raises ArgumentError (BAD_SIZE) if the bundle is not compiled
        for these sizes; nothing changes then."""
        with self._lock, self._choice():
            for name, size in sizes.items():
                self._call("hoist_choose_size", _c.raw(name), size)

    # Running

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None, /, **named: Any) -> list[NDArray[Any]]:
        """Sets the inputs, runs, and returns a copy of every output in order.

        Inputs are given by name (`run(image=a)`, or `run({"image:0": a})`), or all in order (`run([a, b])`); an omitted input
        keeps its value. Each is a numpy array, or an object with __dlpack__ or __array__, with the exact shape and type of the
        input; lists and Python scalars are converted, strings may be str (as UTF-8) or bytes. In a bundle for several sizes
        the shapes choose the specialisation.

        A dynamic output has its actual shape. Strings are object arrays of str.

        Raises ArgumentError for an unsuitable name, type, shape (BAD_SIZE) or string, and for an input that was never set;
        Error (BAD_EXTENT) if a dynamic output exceeds its upper bound.
        """
        with self._lock:
            given = self._by_name(inputs, named)
            arrays = []
            is_other = False
            for name, value in given.items():
                port = self._port("input", name)
                array = self._array(port, value)
                is_other |= array.shape != port.array.shape
                arrays.append((port, array))
            if is_other:
                with self._choice():
                    for port, array in arrays:
                        self._call("hoist_choose_input_shape", port.index, _shape(array.shape), array.ndim)
                # An input may contradict the sizes that another one has chosen.
                arrays = [self._exact("input", port.array.name, array) for port, array in arrays]
            for port, array in arrays:
                self._set(port, array)
            self._call("hoist_run")
            return [self._output(port) for port in self._ports("output").values()]

    def set_input(self, name: str, value: Any) -> None:
        """Copies one input in, as run() does, for many runs. It never changes the specialisation: the shape must be that of
        the one in use."""
        with self._lock:
            self._set(*self._exact("input", name, value))

    def set_pixels(self, name: str, pixels: Any, *, blue_first: bool = False) -> None:
        """Sets an input to images: resized, cropped and scaled as the bundle states, equal to `hoist run` bit for bit.

        An image is an array of uint8, [rows][columns][channels] or, if the input is grey, [rows][columns], its colours
        red, green, blue unless `blue_first`. An input for several images takes a sequence of that many. Raises
        ArgumentError if the bundle has no preprocessing or an image does not fit; the input is unchanged then."""
        with self._lock:
            port = self._port("input", name)
            is_one = isinstance(pixels, np.ndarray) and pixels.ndim <= 3
            images = [_image(image, name) for image in ([pixels] if is_one else pixels)]
            given = (_c.Pixels * max(len(images), 1))()
            for i, image in enumerate(images):
                rows, columns, channels = image.shape
                given[i] = _c.Pixels(image.ctypes.data, rows, columns, channels, image.strides[0], int(blue_first))
            self._call("hoist_set_input_pixels", port.index, given, len(images))

    def preprocessing(self, name: str) -> Preprocessing | None:
        """The image preprocessing of the input; None if the bundle has none."""
        with self._lock:
            port = self._port("input", name)
            how = _c.Preprocessing()
            try:
                self._call("hoist_input_preprocessing", port.index, ctypes.byref(how))
            except ArgumentError:
                return None
            resize = (how.resize_rows, how.resize_columns) if how.resize_rows else how.resize_columns or None
            return Preprocessing(how.rows, how.columns, how.channels, bool(how.channels_first), bool(how.blue_first), resize,
                                 bool(how.crop), how.scale, tuple(how.mean[:how.channels]),
                                 tuple(how.deviation[:how.channels]))

    def output(self, name: str) -> NDArray[Any]:
        """A copy of one output of the latest run, as run() returns it."""
        with self._lock:
            return self._output(self._port("output", name))

    def input_memory(self, name: str) -> NDArray[Any]:
        """Memory from which the next runs read the input without a copy. The input counts as set from now on and is zero
        until it is written.

        The array stays valid while it is referenced, even after close(). It belongs to the current specialisation. Do not
        access it during run(). Types of 2 and 4 bits are bytes with several elements, lowest bits first. Raises
        ArgumentError for strings.
        """
        return self._view("input", name)

    def output_memory(self, name: str) -> NDArray[Any]:
        """Memory to which the next runs write the output, read-only, with the lifetime of input_memory. A dynamic output has
        the capacity of its upper bound."""
        return self._view("output", name)

    def state(self, name: str) -> NDArray[Any]:
        """A copy of a state."""
        with self._lock:
            port = self._port("state", name)
            held = np.empty(port.bytes, np.uint8) if port.element.is_packed else np.empty(port.array.shape, port.element.dtype)
            self._call("hoist_get_state", port.index, _address(held), held.nbytes)
            return port.element.unpacked(held, port.array.shape)

    def set_state(self, name: str, value: Any) -> None:
        """Sets a state, which has its shape and type."""
        with self._lock:
            port, array = self._exact("state", name, value)
            held = port.element.packed(array)
            self._call("hoist_set_state", port.index, _address(held), held.nbytes)

    def reset_states(self) -> None:
        """Gives every state its initial value."""
        with self._lock:
            self._call("hoist_reset_states")

    def save_states(self, file: FolderName) -> None:
        """Writes all states to a file, which appears complete or not at all."""
        with self._lock:
            self._call("hoist_save_states", os.fsencode(file))

    def load_states(self, file: FolderName) -> None:
        """Sets all states from a file of save_states. Raises Error for a damaged file, and ArgumentError for one of another
        model or with other states; then no state changes."""
        with self._lock:
            self._call("hoist_load_states", os.fsencode(file))

    def seed_inputs(self, seed: int) -> None:
        """Fills every input with seeded values that the model accepts, equal on every machine."""
        with self._lock:
            self._call("hoist_seed_inputs", seed % 2**64)

    # Checking and measuring

    def verify(self, report: Callable[[Finding], None] | None = None) -> list[Finding]:
        """The self-check: hashes of all files, then every kernel of every specialisation on seeded inputs, compared with
        expected values. Overwrites the inputs and resets the states. `report` gets each finding as it is made.

        Returns the findings; raises VerificationError, which contains them too, if one did not pass.
        """
        with self._lock:
            handle = self._opened()
            reports = _Reports(report)
            status = _status(self._library.hoist_verify(handle.pointer, reports.callback(), None))
            message = _c.text(self._library.hoist_error_message(handle.pointer)) if status != Status.OK else ""
        return _checked(status, message, reports)

    def profile(self) -> list[Step]:
        """Runs once on the current inputs and returns the steps with their seconds."""
        with self._lock:
            steps = self.steps
            seconds = (ctypes.c_double * max(len(steps), 1))()
            self._call("hoist_profile", seconds)
            return [Step(step.kernel, step.layers, step.operations, step.on_host, seconds[i])
                    for i, step in enumerate(steps)]

    # Between Python and C

    def _opened(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise ArgumentError(Status.BAD_ARGUMENT, f"{self._folder} is closed")
        return handle

    def _call(self, function: str, *arguments: Any) -> None:
        """A function of the runtime that returns a status."""
        pointer = self._opened().pointer
        number = getattr(self._library, function)(pointer, *arguments)
        if number != 0:
            status = _status(number)
            raise error_of(status, _c.text(self._library.hoist_error_message(pointer)) or status.name)

    def _text(self, function: str) -> str:
        with self._lock:
            return _c.text(getattr(self._library, function)(self._opened().pointer))

    def _number(self, function: str) -> int:
        with self._lock:
            return int(getattr(self._library, function)(self._opened().pointer))

    def _choice(self) -> _Choice:
        return _Choice(self._library, self._opened(), self._described)

    def _ports(self, kind: str) -> dict[str, _Port]:
        """The inputs, outputs or states of the specialisation in use, by name, in order; each specialisation is described
        once."""
        handle = self._opened()
        key = kind, self._library.hoist_specialisation_in_use(handle.pointer) if self._has_sizes else 0
        if key not in self._described:
            count = getattr(self._library, f"hoist_{kind}_count")(handle.pointer)
            ports = [self._describe(kind, index) for index in range(count)]
            self._described[key] = {port.array.name: port for port in ports}
        return self._described[key]

    def _describe(self, kind: str, index: int) -> _Port:
        held = _c.Array()
        self._call(f"hoist_{kind}", index, ctypes.byref(held))
        element = element_type(_c.text(held.scalar))
        shape = tuple(int(held.shape[i]) for i in range(held.rank))
        array = Array(_c.text(held.name), element.scalar, shape, element.dtype, element.reason)
        return _Port(index, kind, array, element, held.bytes, _shape(shape))

    def _port(self, kind: str, name: str) -> _Port:
        ports = self._ports(kind)
        if name not in ports:
            raise ArgumentError(Status.BAD_ARGUMENT, f"no {kind} is called {name} (there are: {', '.join(ports)})")
        return ports[name]

    def _by_name(self, inputs: Mapping[str, Any] | Sequence[Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
        if inputs is None:
            return dict(named)
        if isinstance(inputs, Mapping):
            return {**inputs, **named}
        if not isinstance(inputs, (list, tuple)):
            raise ArgumentError(Status.BAD_ARGUMENT, "run() takes inputs by name, or all of them in a list: run([array])")
        names = list(self._ports("input"))
        if len(inputs) != len(names) or named:
            raise ArgumentError(Status.BAD_ARGUMENT, f"{len(inputs)} inputs given in order, the bundle has {len(names)}: "
                                                     f"{', '.join(names)}")
        return dict(zip(names, inputs))

    @staticmethod
    def _array(port: _Port, value: Any) -> NDArray[Any]:
        try:
            return from_anything(value, port.element, port.array.name)
        except (TypeError, ValueError, OverflowError, BufferError) as problem:
            start = "" if str(problem).startswith("input ") else f"{port.kind} {port.array.name}: "
            raise ArgumentError(Status.BAD_ARGUMENT, start + str(problem)) from None

    def _exact(self, kind: str, name: str, value: Any) -> tuple[_Port, NDArray[Any]]:
        """The port of this name and an array of its shape."""
        port = self._port(kind, name)
        array = self._array(port, value)
        if array.shape != port.array.shape:
            raise ArgumentError(Status.BAD_SIZE, f"{kind} {name} has the shape {list(port.array.shape)}, not "
                                                 f"{list(array.shape)}")
        return port, array

    def _set(self, port: _Port, array: NDArray[Any]) -> None:
        if not port.element.is_string:
            held = port.element.packed(array)
            self._call("hoist_set_input", port.index, _address(held), held.nbytes)
            return
        try:
            texts = strings_of(array, port.array.name)
        except TypeError as problem:
            raise ArgumentError(Status.BAD_ARGUMENT, str(problem)) from None
        strings = (_c.String * max(len(texts), 1))()
        kept = [ctypes.create_string_buffer(text, len(text) + 1) for text in texts]
        for i, buffer in enumerate(kept):
            strings[i].data, strings[i].length = ctypes.addressof(buffer), len(texts[i])
        self._call("hoist_set_input_strings", port.index, strings, len(texts))

    def _output(self, port: _Port) -> NDArray[Any]:
        bound = port.array.shape
        self._call("hoist_output_shape", port.index, port.extents, len(bound))
        shape = tuple(port.extents[:len(bound)])
        if port.element.is_string:
            count = port.bytes // 8
            strings = (_c.String * max(count, 1))()
            self._call("hoist_get_output_strings", port.index, strings, count)
            whole: NDArray[Any] = np.empty(count, dtype=object)
            for i in range(count):
                whole[i] = _c.text(ctypes.string_at(strings[i].data, strings[i].length) if strings[i].length else b"")
            whole = whole.reshape(bound)
        else:
            held = np.empty(port.bytes, dtype=np.uint8) if port.element.is_packed else np.empty(bound, port.element.dtype)
            self._call("hoist_get_output", port.index, _address(held), held.nbytes)
            whole = port.element.unpacked(held, bound)
        if shape == bound:
            return whole
        return np.ascontiguousarray(whole[tuple(slice(extent) for extent in shape)])

    def _view(self, kind: str, name: str) -> NDArray[Any]:
        with self._lock:
            handle = self._opened()
            port = self._port(kind, name)
            if port.element.is_string:
                raise ArgumentError(Status.BAD_ARGUMENT, f"{kind} {name} holds strings, which are copied: run() and output()")
            address = ctypes.c_void_p()
            self._call(f"hoist_{kind}_memory", port.index, ctypes.byref(address))
            if not address.value or port.bytes == 0:
                return np.empty(port.array.shape, port.element.dtype)
            held: NDArray[Any] = np.asarray(_Memory(handle, address.value, port.bytes, kind == "input"))
            return held if port.element.is_packed else port.element.unpacked(held, port.array.shape)


class _Choice:
    """Restores the specialisation if a choice in several calls fails."""

    def __init__(self, library: ctypes.CDLL, handle: _Handle, described: dict[tuple[str, int], dict[str, _Port]]) -> None:
        self.library, self.handle, self.described = library, handle, described

    def __enter__(self) -> None:
        self.before = self.library.hoist_specialisation_in_use(self.handle.pointer)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self.library.hoist_specialisation_in_use(self.handle.pointer) == self.before:
            self.described.clear()  # the choice of an open size changes shapes of the specialisation in use
        elif kind is not None:
            self.library.hoist_choose(self.handle.pointer, self.before)


def _checked(status: Status, message: str, reports: _Reports) -> list[Finding]:
    if reports.raised is not None:
        raise reports.raised
    if status == Status.OK:
        return reports.findings
    if reports.findings:
        raise VerificationError(status, message or "the self-check found a difference", reports.findings)
    raise error_of(status, message)


def open(folder: FolderName, *, device: str | int | None = None, threads: int = 0, cache: bool = True,
         cache_folder: FolderName | None = None, context_of: Bundle | None = None, separate_buffers: int = 0,
         progress: DriverProgress | None = None) -> Bundle:
    """Opens the bundle in `folder`: loads the runtime, checks the files, compiles the kernels or takes them from the cache.

    device: an index (devices()) or a part of a device's name in any letter case; None selects the bundle's own kind.
    threads: the maximum number of CPU threads; 0: all.
    cache, cache_folder: whether and where compiled kernels are cached; by default ${XDG_CACHE_HOME:-~/.cache}/hoist.
    context_of: an open bundle whose OpenCL context, device and threads this one shares; either may be closed first.
    separate_buffers: 1 to 255, for checking devices: a buffer for each array, filled with that byte.
    progress: called with the number of compiled parts, the number of all parts, and the next kernel ("" for none); an
        empty cache can mean minutes. Exceptions of the function are printed and ignored.

    Open bundles only from sources whose programs you would run: kernels, and the runtime if none is installed, are compiled
    and become part of this process.

    Raises Error with status NO_LIBRARY without a C runtime, BAD_BUNDLE for a missing or damaged file, NO_DEVICE without a
    suitable device, DEVICE_ERROR for failures of the driver.
    """
    return Bundle(folder, device=device, threads=threads, cache=cache, cache_folder=cache_folder, context_of=context_of,
                  separate_buffers=separate_buffers, progress=progress)


def devices(folder: FolderName | None = None) -> list[Device]:
    """The devices of all OpenCL platforms. If no runtime is installed, the runtime of the bundle in `folder` lists them."""
    library = _library.load(None if folder is None else Path(folder))
    # A device may appear between two calls, so the second also returns the number.
    capacity = 16
    while True:
        found = (_c.Device * capacity)()
        count = library.hoist_devices(found, capacity)
        if count <= capacity:
            return [Device(i, _c.text(one.name), _c.text(one.platform), _c.text(one.driver), bool(one.is_cpu),
                           one.compute_units) for i, one in enumerate(found[:count])]
        capacity = count


def verify_files(folder: FolderName, report: Callable[[Finding], None] | None = None) -> list[Finding]:
    """The first part of Bundle.verify alone, the hashes of the files; needs no device. Returns and raises the same."""
    library = _library.load(Path(folder))
    reports = _Reports(report)
    message = ctypes.create_string_buffer(1024)
    status = library.hoist_verify_files(os.fsencode(folder), reports.callback(), None, message, len(message))
    return _checked(_status(status), _c.text(message.value), reports)
