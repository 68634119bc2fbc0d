"""Compiled models of libraries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from ctypes import byref, c_void_p
from functools import partial
from types import MappingProxyType

from armpy.backend import current_cancellation
from armpy.ops.operation import Array
from armpy_native.arguments import Arguments
from armpy_native.library import MOST_SAVED_BYTES, Device, Span, address_of, aligned, span_of
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
        Elements, for ``compile_shared``, of the graph's empty buffers by their number.
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
        arguments: list[object] = [device.handle, span_of(graph)]
        if function == "compile_shared":
            spans = (Span * (max(self.constants, default=-1) + 1))()
            for number, array in self.constants.items():
                spans[number] = span_of(array)
            arguments += [spans, len(spans)]
        with device.lock:
            device.call(function, *arguments, byref(self.handle))
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
            held = self, arguments, arrays
            start_and_wait(self.device, self.lock, arguments, cancellation, held)
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
            held = self, arguments, (*inputs, *outputs)
            return partial(start_and_wait, self.device, self.lock, arguments, cancellation, held)
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


def _well_placed(array: Array) -> Array:
    """An array that begins at a multiple of 16: the same if it does, else a copy."""
    if address_of(array) % 16:
        return aligned(array.tobytes())
    return array
