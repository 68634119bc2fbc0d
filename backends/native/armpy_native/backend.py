"""Backends of shared libraries in C: subgraphs as .tflite models that the library compiles."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from weakref import WeakValueDictionary

import numpy as np

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IEngineBackend,
    IEngineProgram,
    IEnginePrograms,
    ILayerSupport,
    Numerics,
    OptimizationViews,
    OptionValue,
    OptionValues,
    PreparationRequest,
    SavedProgram,
    Substitution,
    postpone_compilation,
)
from armpy.errors import ArmpyError, InvalidArgumentError, UnimplementedError
from armpy.frontends.tflite.reader import read_model
from armpy.frontends.tflite_writer.tflite import view_bytes, view_bytes_and_constants
from armpy.graph import SubgraphView, Value
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy.types import BackendId, DeviceType
from armpy_native.layer_support import NativeLayerSupport
from armpy_native.library import (
    DEVICE_TYPES,
    Device,
    Library,
    aligned,
    load_library,
    span_of,
)
from armpy_native.program import Program

_log = logging.getLogger("armpy.native")

_MODEL, _COMPILED = "model", "compiled"
"""Parts of a saved program: the .tflite model, or the library's compiled form. Constants that are
not in the model are parts called by the numbers of their buffers."""


class NativeProgram(IEngineProgram):
    """A subgraph that a library has compiled."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def model(self) -> bytes:
        """The .tflite model."""
        return self._program.graph.tobytes()

    @property
    def parts(self) -> dict[str, bytes | Array]:
        """The compiled form if the library has one, else the model and its constants."""
        saved = self._program.saved()
        if saved is not None:
            return {_COMPILED: saved}
        constants = self._program.constants.items()
        return {_MODEL: self.model, **{str(n): x.reshape(-1).view(np.uint8) for n, x in constants}}

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Have the library compute the outputs."""
        self._program.execute(inputs, outputs)

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """Prepare the arguments in C of executions with the same arrays."""
        return self._program.bind(inputs, outputs)


class NativePrograms(IEnginePrograms):
    """Has a library compile models."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """The library, its version, its contents, and its options."""
        return {
            "library": self._library.id,
            "version": self._library.version,
            "contents": self._library.digest,
            "options": str(options.get("options", "{}")),
        }

    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> NativeProgram:
        """Have the library compile a model.

        Raises
        ------
        ArmpyError
            If the library refuses it.
        """
        device = device_of(self._library.path, str(about["options"]))
        graph = aligned(model)
        (subgraph,) = read_model(memoryview(model)).tables("Subgraphs", "subgraph")
        num_operators = len(subgraph.tables("Operators", "operator"))
        for reason in device.supports(span_of(graph), num_operators):
            if reason:
                raise UnimplementedError(reason, where=self._library.id)
        return NativeProgram(Program(device, graph))

    def save(self, program: object, options: OptionValues) -> SavedProgram:
        """Write down the compiled form, or the model with its constants as parts of their own."""
        assert isinstance(program, NativeProgram)
        return SavedProgram(self.describe(options), program.parts)

    def load(self, saved: SavedProgram) -> NativeProgram:
        """Load the compiled form, or compile the model with the constants where they lie."""
        device = device_of(self._library.path, str(saved.about["options"]))
        parts = {name: np.frombuffer(part, np.uint8) for name, part in saved.parts.items()}
        if _COMPILED in parts:
            return NativeProgram(Program(device, aligned(parts[_COMPILED].data), "load"))
        graph = aligned(parts.pop(_MODEL).data)
        if not parts:
            return NativeProgram(Program(device, graph))
        if not self._library.table.compile_shared:
            raise UnimplementedError("the library lacks compile_shared", where=self._library.id)
        constants = {int(number): part for number, part in parts.items()}
        return NativeProgram(Program(device, graph, "compile_shared", constants))


class NativeContext(IBackendContext):
    """The open device of a runtime."""

    def __init__(self, device: Device) -> None:
        self._device = device


class NativeBackend(IEngineBackend):
    """Runs subgraphs through a shared library with the interface of ``armpy_backend.h``."""

    library: Library  # of the subclass that `backend` makes

    def get_id(self) -> BackendId:
        """The library's id."""
        return self.library.id

    def get_api_version(self) -> str:
        """The version of the contract that the host was written for."""
        return "2.8"

    @property
    def version(self) -> str:
        """The library's version."""
        return self.library.version

    @property
    def options(self) -> Sequence[BackendOption]:
        """The library's own options, as one text."""
        return (BackendOption("options", "{}", "Options of the library, as a JSON object."),)

    def get_devices(self) -> Sequence[DeviceInfo]:
        """The device that the library describes."""
        options = str(self._runtime_options.get("options", "{}"))
        try:
            return (_described_device(self.library.path, options),)
        except ArmpyError as error:
            # The backend is left out, with this error, when its context is made.
            _log.info("%s cannot be described: %s", self.library.id, error)
            return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Open the device.

        Raises
        ------
        ArmpyError
            If the library refuses; DeviceNotFoundError if the machine has no such device.
        """
        return NativeContext(device_of(self.library.path, str(options["options"])))

    def get_engine(self) -> NativePrograms:
        """The object that has the library compile models."""
        return NativePrograms(self.library)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Ask the library, whose answers need no compilation.

        Raises
        ------
        CompilationPostponedError
            If the caller does not want to wait for compilation.
        """
        if self.compiles_slowly({**self._runtime_options, **request.model_options}):
            postpone_compilation(self.get_id(), "the network", is_kept=False)
        return NativeLayerSupport(self._device_for(request))

    def convert(self, view: SubgraphView) -> bytes:
        """A .tflite model of the subgraph."""
        return view_bytes(view)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile the whole subgraph, and execute it once, on zeros.

        A part that the library refuses with AP_UNSUPPORTED is halved, and each half tried; layers
        that it refuses alone go to the next backend, with its reason.
        """
        device = self._device_for(request)
        views = OptimizationViews()
        parts = [view]
        while parts:
            part = parts.pop()
            middle = len(part.layers) // 2
            try:
                program = self._compiled(device, part)
            except UnimplementedError as error:
                if middle:
                    parts += part.part(part.layers[middle:]), part.part(part.layers[:middle])
                else:
                    views.fail(part, error.failed)
                continue
            shapes = tuple(value.info.known_shape for value in part.outputs)
            operation = PreCompiled(program, shapes)
            views.substitutions.append(Substitution.by_operation(part, operation))
        return views

    def _compiled(self, device: Device, part: SubgraphView) -> NativeProgram:
        """Compile a part and execute it; constants stay where they are if the library can."""
        if self.library.table.compile_shared:
            graph, constants = view_bytes_and_constants(part)
            program = NativeProgram(Program(device, aligned(graph), "compile_shared", constants))
        else:
            program = NativeProgram(Program(device, aligned(self.convert(part))))
        program.execute(*(list(map(_zeros, values)) for values in (part.inputs, part.outputs)))
        return program

    def _device_for(self, request: PreparationRequest) -> Device:
        """The open device for the options of the runtime and the network."""
        options = {**self._runtime_options, **request.model_options}
        return device_of(self.library.path, str(options.get("options", "{}")))


def _zeros(value: Value) -> Array:
    """Elements of a tensor."""
    return np.zeros(value.info.known_shape, value.info.data_type.dtype)


# Weak: a device is closed after the last runtime, program and question that use it.
_devices: WeakValueDictionary[tuple[str, str], Device] = WeakValueDictionary()
_opening = threading.Lock()


@cache  # armpy reads it several times before a runtime opens the device, which may take a second
def _described_device(path: str, options: str) -> DeviceInfo:
    """Return a library's description of its device for some options; raises as `device_of`."""
    facts = device_of(path, options).facts
    numerics = Numerics(keeps_nan=facts.get("keeps_nan") is not False)
    return DeviceInfo(device_type=DEVICE_TYPES[str(facts["type"])], numerics=numerics)


def device_of(path: str, options: str) -> Device:
    """Return the open device of a library for some options, or open it.

    Raises
    ------
    InvalidArgumentError
        If the options are not a JSON object.
    ArmpyError
        If the library refuses.
    """
    library = load_library(path)
    try:
        is_object = isinstance(json.loads(options or "{}"), dict)
    except ValueError:
        is_object = False
    if not is_object:
        raise InvalidArgumentError(
            "the library's options are not a JSON object",
            where=f"{library.id} / options",
            expected='such as {"clock": "high"}',
            actual=options,
        )
    key = path, options or "{}"
    with _opening:
        device = _devices.get(key)
        if device is None:
            device = _devices[key] = Device(library, key[1])
        return device


def backend(library: str) -> type[NativeBackend]:
    """Make a backend of a library, for a vendor's entry point.

    Parameters
    ----------
    library : str
        Path of the library; a relative one begins at the folder of the calling module. A name
        without a folder that is not there is left to the system's loader.

    Raises
    ------
    BackendUnavailableError
        If it cannot be loaded, or is not a library of version 1.

    Examples
    --------
    >>> AcmeNpu = armpy_native.backend("libacme.so")                # doctest: +SKIP
    """
    folder = os.path.dirname(sys._getframe(1).f_globals.get("__file__", ""))
    beside = os.path.join(folder, library)
    return open_library(beside if os.path.exists(beside) else library)


def open_library(path: str) -> type[NativeBackend]:
    """Make a backend of the library at a path; errors as of `backend`."""
    loaded = load_library(path)
    return type(loaded.id, (NativeBackend,), {"library": loaded, "__doc__": NativeBackend.__doc__})
