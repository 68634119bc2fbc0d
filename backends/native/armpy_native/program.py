"""Compiled models of libraries, and the arguments of their executions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from ctypes import byref, c_int64, c_void_p
from functools import partial
from types import MappingProxyType

from armpy.backend import Cancellation, current_cancellation
from armpy.errors import UnimplementedError
from armpy.ops.operation import Array
from armpy_native.library import (
    DTYPES,
    MOST_SAVED_BYTES,
    Device,
    Error,
    Span,
    Tensor,
    address_of,
    aligned,
    span_of,
)
from armpy_native.started import start_and_wait


class Program:
    """A compiled model of a device, released with the object.

    Parameters
    ----------
    device : Device
    graph : ndarray of uint8
        A .tflite model, or what `saved` gave, as `aligned` makes it.
    function : {"compile", "load", "compile_shared"}
    constants : mapping of int to ndarray, C-contiguous
        For ``compile_shared``, the elements of the graph's empty buffers by their number.
    """

    def __init__(
        self,
        device: Device,
        graph: Array,
        function: str = "compile",
        constants: Mapping[int, Array] = MappingProxyType({}),
    ) -> None:
        self.device = device
        self.graph = graph
        # The library reads them where they lie as long as the program is there.
        self.constants = {number: _well_placed(array) for number, array in constants.items()}
        self.handle = c_void_p()
        arguments: tuple[object, ...] = ()
        if function == "compile_shared":
            spans = (Span * (max(self.constants, default=-1) + 1))()
            for number, array in self.constants.items():
                spans[number] = span_of(array)
            arguments = spans, len(spans)
        with device.lock:
            device.call(function, device.handle, span_of(graph), *arguments, byref(self.handle))
        if not self.handle.value:
            raise device.broken(function, "returned no program")
        concurrent = device.facts.get("concurrent") is True
        self.lock: AbstractContextManager[object] = threading.Lock()
        if concurrent:
            self.lock = nullcontext()
        self._execute = device.library.table.execute
        self._starts = bool(device.library.table.start)
        self._local = threading.local()

    def saved(self) -> bytes | None:
        """The compiled form; None if the library has none."""
        if not self.device.library.table.save:
            return None

        def fill(memory: c_void_p, room: int, needed: object) -> None:
            self.device.call("save", self.handle, memory, room, needed)

        with self.device.lock:
            return self.device.sized_text("save", fill, MOST_SAVED_BYTES, 0)

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs; raise the library's error.

        Parameters
        ----------
        inputs, outputs : sequence of ndarray
            C-contiguous, of the same shapes and types in each execution.
        """
        self.device.check_is_there("execute")  # its execution may still read the arguments
        try:
            arguments: Arguments = self._local.arguments
        except AttributeError:
            arguments = self._local.arguments = Arguments(self.handle.value, inputs, outputs)
        arrays = (*inputs, *outputs)
        arguments.point_to(arrays)
        cancellation = current_cancellation()
        if self._starts:
            start_and_wait(self, arguments, arrays, cancellation)
            return
        with self.lock:
            status = self._execute(
                *arguments.tensors, arguments.cancel_address(cancellation), arguments.error_address
            )
        if status:
            raise self.device.failure("execute", status, arguments.error)

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """Prepare executions with the same arrays; arguments and errors as of `execute`."""
        arguments = Arguments(self.handle.value, inputs, outputs)
        cancellation = current_cancellation()
        if self._starts:
            arrays = (*inputs, *outputs)
            return partial(start_and_wait, self, arguments, arrays, cancellation)
        lock, cancel = self.lock, arguments.cancel_address(cancellation)
        call = partial(self._execute, *arguments.tensors, cancel, arguments.error_address)

        def execute() -> None:
            with lock:
                status = call()
            if status:
                raise self.device.failure("execute", status, arguments.error)

        return execute

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        # In cyclic garbage the device can be closed before, and its programs with it.
        if handle and self.device.handle.value and not self.device.lost:
            self.device.library.table.release(handle)


class Arguments:
    """Arguments of the executions of one thread, whose arrays have the same shapes and types."""

    def __init__(
        self, handle: int | None, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        arrays = (*inputs, *outputs)
        for array in arrays:
            if array.dtype not in DTYPES:
                raise UnimplementedError(f"armpy_backend.h has no type {array.dtype}")
        self._addresses = [address_of(array) for array in arrays]
        self._dims = [(c_int64 * array.ndim)(*array.shape) for array in arrays]
        self._tensors = (Tensor * len(arrays))(
            *(
                Tensor(address, array.nbytes, dims, array.ndim, DTYPES[array.dtype], 0)
                for array, address, dims in zip(arrays, self._addresses, self._dims, strict=True)
            )
        )
        self.error = Error()
        self.error_address = ctypes.addressof(self.error)
        self.event = c_void_p()
        self.event_address = ctypes.addressof(self.event)
        first = ctypes.addressof(self._tensors)
        second = first + len(inputs) * ctypes.sizeof(Tensor)
        self.tensors = (handle, first, len(inputs), second, len(outputs))

    def point_to(self, arrays: Sequence[Array]) -> None:
        """Let the tensors point to other arrays."""
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        if addresses != self._addresses:
            self._addresses = addresses
            for tensor, address in zip(self._tensors, addresses, strict=True):
                tensor.data = address

    def cancel_address(self, cancellation: Cancellation | None) -> int:
        """Where the library looks whether to stop."""
        return _NEVER_ADDRESS if cancellation is None else cancellation.address


_NEVER = c_int64(0)
_NEVER_ADDRESS = ctypes.addressof(_NEVER)
"""Of the word of executions that nobody can cancel."""


def _well_placed(array: Array) -> Array:
    """An array that begins at a multiple of 16: the same if it does, else a copy."""
    if address_of(array) % 16:
        return aligned(array.tobytes())
    return array
