"""What one execution of a plan works on: arenas, tensor handles, and the caller's arrays."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy import ndarray

from armpy.backend import ALIGNMENT_BYTES, HostTensorHandle, ICustomAllocator, ITensorHandle
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Value
from armpy.logs import wants_traceback
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork
from armpy.plugins.boundary import ask_method, call_method
from armpy.runtime.session import BackendSession
from armpy.runtime.steps import Execute
from armpy.runtime.tensors import may_overlap
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")


class WorkingMemory:
    """Arenas and tensor handles of one execution at a time.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    executes : sequence of callable
        What each layer's backend made of it.
    sessions : mapping of str to BackendSession
        By backend id.
    writes_directly : sequence of bool
        Per result, whether a layer writes it.

    Attributes
    ----------
    steps : list of tuple
        What to call for each layer, and with which handles.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        executes: Sequence[Execute],
        sessions: Mapping[BackendId, BackendSession],
        writes_directly: Sequence[bool],
    ) -> None:
        graph = network.graph
        handles: dict[Value, ITensorHandle] = {}
        arenas = {
            name: _allocate(sessions[name], size, self)
            for name, size in network.memory.arena_bytes.items()
        }
        for value, (name, offset) in network.memory.offsets.items():
            memory = arenas[name][offset : offset + value.info.size_bytes]
            ask = (name, ITensorHandle, sessions[name].handles, "create_tensor_handle")
            handles[value] = ask_method(*ask, value.info, memory)
        self._sources = [HostTensorHandle(value.info, _NOTHING) for value in graph.sources]
        handles.update(zip(graph.sources, self._sources, strict=True))
        self._results: list[HostTensorHandle] = []
        self._shapes = [(v.info.known_shape, v.info.data_type.dtype) for v in graph.results]
        for value, direct in zip(graph.results, writes_directly, strict=True):
            handle = HostTensorHandle(value.info, _NOTHING)
            self._results.append(handle)
            if direct:
                handles[value] = handle
        self._bound = (*self._sources, *self._results)
        self._inputs = self._sources[: len(graph.inputs)]
        self._copies = [
            (handle, _handle_of(value, handles))
            for value, handle, direct in zip(
                graph.results, self._results, writes_directly, strict=True
            )
            if not direct
        ]
        self._named_inputs = _named([value.name for value in graph.inputs], self._sources)
        self._named_outputs = _named(graph.output_names, self._results)
        self.steps = [
            (
                execute,
                [None if v is None else _handle_of(v, handles) for v in layer.inputs],
                [handles[v] for v in layer.outputs],
            )
            for layer, execute in zip(graph.layers, executes, strict=True)
        ]

    def bind(self, sources: Sequence[Array], results: Sequence[Array | None] | None) -> list[Array]:
        """Let the steps read and write some arrays; make those that are missing.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `armpy.runtime.static_plan.StaticPlan.run`.

        Returns
        -------
        list of ndarray
            Every result.
        """
        # Every turn of a loop in a network comes by here, and enumerate would take longer.
        index = 0
        for handle in self._sources:
            handle.array = sources[index]
            index += 1  # noqa: SIM113
        index, bound = 0, []
        for handle in self._results:
            given = None if results is None else results[index]
            if given is None:
                given = np.empty(*self._shapes[index])
            handle.array = given
            bound.append(given)
            index += 1  # noqa: SIM113
        return bound

    def bind_call(
        self, inputs: Mapping[str, object], outputs: Mapping[str, Array]
    ) -> dict[str, Array] | None:
        """Let the steps read and write a caller's arrays, if these can be used as they are.

        Parameters
        ----------
        inputs : mapping of str to array_like
        outputs : mapping of str to ndarray
            None of them, or all.

        Returns
        -------
        dict of str to ndarray, or None
            Every output. None if an array is missing, too many, or not just what is needed: it
            may have to be converted or copied, or be an error. Call `unbind` then.

        Notes
        -----
        Nothing is remembered of the call before, as type, shape, strides, memory, and
        writability of an array can all be changed in place.
        """
        # Nearly every call comes by here, and each check is some percent of what it costs.
        if type(inputs) is not dict or type(outputs) is not dict:
            return None
        if len(inputs) != len(self._named_inputs):
            return None
        try:
            for name, dtype, shape, handle in self._named_inputs:
                array = inputs[name]
                if type(array) is not ndarray or array.shape != shape:
                    return None
                if array.dtype is not dtype and array.dtype != dtype:
                    return None
                flags = array.flags
                if not flags.carray and not (flags.c_contiguous and flags.aligned):
                    return None
                handle.array = array
        except KeyError:
            return None
        return self._bind_outputs(outputs) if outputs else self._make_outputs()

    def bind_state(self, arrays: Sequence[Array], following: Sequence[Array | None]) -> list[Array]:
        """Let the steps read variables, and write what these hold next; see `State`.

        Returns
        -------
        list of ndarray
            What they hold next; new arrays where there is none to write to.
        """
        index = len(self._named_inputs)
        for array in arrays:
            self._sources[index].array = array
            index += 1
        index, bound = len(self._named_outputs), []
        for given in following:
            array = np.empty(*self._shapes[index]) if given is None else given
            self._results[index].array = array
            bound.append(array)
            index += 1
        return bound

    def _make_outputs(self) -> dict[str, Array]:
        """Let the steps write new arrays."""
        results = {}
        for name, dtype, shape, handle in self._named_outputs:
            handle.array = results[name] = np.empty(shape, dtype)
        return results

    def _bind_outputs(self, outputs: Mapping[str, Array]) -> dict[str, Array] | None:
        """Let the steps write a caller's arrays, if these overlap neither inputs nor each other."""
        if len(outputs) != len(self._named_outputs):
            return None
        results: dict[str, Array] = {}
        try:
            for name, dtype, shape, handle in self._named_outputs:
                array = outputs[name]
                if type(array) is not ndarray or array.shape != shape:
                    return None
                if array.dtype is not dtype and array.dtype != dtype:
                    return None
                flags = array.flags
                if not flags.carray:
                    return None
                is_owner = flags.owndata
                for source in self._inputs:
                    other = source.array
                    is_apart = is_owner and other.base is None and array is not other
                    if not is_apart and may_overlap(array, other):
                        return None
                if results:
                    for other in results.values():
                        if may_overlap(array, other):
                            return None
                handle.array = results[name] = array
        except KeyError:
            return None
        return results

    def copy_results(self) -> None:
        """Fill results that no step writes: passed-through sources, constants, repeats."""
        for target, source in self._copies:
            target.array[...] = source.map()
            source.unmap()

    def unbind(self) -> None:
        """Forget the caller's arrays."""
        for handle in self._bound:
            handle.array = _NOTHING


_NOTHING: Array = np.empty(0, np.uint8)

_Named: TypeAlias = tuple[str, np.dtype[Any], tuple[int, ...], HostTensorHandle]


def _named(names: Sequence[str], handles: Sequence[HostTensorHandle]) -> tuple[_Named, ...]:
    """Name, type and shape of what each of the first handles takes."""
    pairs = zip(names, handles, strict=False)
    return tuple((n, h.info.data_type.dtype, h.info.known_shape, h) for n, h in pairs)


def _allocate(session: BackendSession, size_bytes: int, owner: WorkingMemory) -> Array:
    """Get an arena from a backend's allocator; it goes back with a working memory."""
    allocator = session.allocator
    where = session.backend_id
    ask = (where, np.ndarray, allocator, "allocate")
    arena = ask_method(*ask, size_bytes, ALIGNMENT_BYTES)
    weakref.finalize(owner, _free, where, allocator, arena)
    fits = arena.dtype == np.uint8 and arena.shape == (size_bytes,) and arena.flags.writeable
    if not fits or (size_bytes and arena.ctypes.data % ALIGNMENT_BYTES):
        raise BackendError(
            "the allocator's memory cannot be used",
            where=f"{where} / allocate",
            expected=f"writable uint8({size_bytes},) aligned to {ALIGNMENT_BYTES} bytes",
            actual=f"{arena.dtype}{arena.shape} at {arena.ctypes.data:#x}",
        )
    return arena


def _free(backend_id: BackendId, allocator: ICustomAllocator, arena: Array) -> None:
    """Give an arena back; nobody waits for an error."""
    try:
        call_method(backend_id, allocator, "free", arena)
    except ArmpyError as error:
        _log.warning("%s", error, exc_info=wants_traceback(_log))


def _handle_of(value: Value, handles: dict[Value, ITensorHandle]) -> ITensorHandle:
    """The handle of a value; constants get theirs when first read."""
    if value not in handles and value.data is not None:
        handles[value] = HostTensorHandle(value.info, value.data)
    return handles[value]
