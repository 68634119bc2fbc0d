"""Runs a fully shaped network: a flat list of prepared steps over planned memory."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from armpy.backend import ALIGNMENT_BYTES, HostTensorHandle, ICustomAllocator, ITensorHandle
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Value
from armpy.logs import wants_traceback
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.plugins.boundary import ask_method, call_method
from armpy.profiling import Profiler
from armpy.runtime.session import BackendSession
from armpy.runtime.steps import Execute, memory_of, prepare_steps, raise_for_step
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")

MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""


class StaticPlan:
    """The prepared steps of one optimised network, for executions side by side.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    sessions : mapping of str to BackendSession
        By backend id.
    profiler : Profiler, optional
        Is told how long each step takes.

    Raises
    ------
    PreparationError
        If backends fail to make workloads; it holds all of them, so that they move at once.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        profiler: Profiler | None = None,
    ) -> None:
        self.network = network
        self._sessions = sessions
        graph = network.graph
        self._executes = prepare_steps(network, sessions, profiler)
        self.result_infos = tuple(value.info for value in graph.results)
        self._idle: deque[_WorkingMemory] = deque(maxlen=MAX_IDLE_MEMORIES)
        self._held = memory_of(network, sessions)
        made = {value for layer in graph.layers for value in layer.outputs}
        self._writes_directly: list[bool] = []
        seen: set[Value] = set()
        for value in graph.results:
            self._writes_directly.append(value in made and value not in seen)
            seen.add(value)
        self._writes_all = all(self._writes_directly)

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    def run(
        self, sources: Sequence[Array], results: Sequence[Array | None] | None = None
    ) -> list[Array]:
        """Execute once; any number of threads may do so at the same time.

        Parameters
        ----------
        sources : sequence of ndarray
            One per source of the graph (inputs, then variables), checked already. Not
            written to.
        results : sequence of (ndarray or None), optional
            Arrays to write results to, which overlap no source; new ones where None.

        Returns
        -------
        list of ndarray
            One per result of the graph (outputs, then variables' next values).

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        if not self._held:  # by far the commonest case, which is to cost nothing
            return self._run(sources, results)
        with ExitStack() as stack:
            for shared in self._held:
                stack.enter_context(shared)
            return self._run(sources, results)

    def _run(self, sources: Sequence[Array], results: Sequence[Array | None] | None) -> list[Array]:
        """Execute once while the backends hold their memory."""
        try:
            memory = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            memory = self._new_memory()
        arrays = memory.bind(sources, results)
        execute: Execute
        step = 0
        try:
            for execute, ins, outs in memory.steps:
                execute(ins, outs)
                step += 1
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            raise_for_step(self.network, step, error)
        finally:
            memory.unbind()
        if not self._writes_all:
            self._finish(sources, arrays)
        self._idle.append(memory)
        return arrays

    def _new_memory(self) -> _WorkingMemory:
        """Allocate what one execution needs."""
        return _WorkingMemory(self.network, self._executes, self._sessions, self._writes_directly)

    def _finish(self, sources: Sequence[Array], arrays: list[Array]) -> None:
        """Fill results that no layer writes: passed-through inputs, constants, repeats."""
        graph = self.network.graph
        by_value: dict[Value, Array] = dict(zip(graph.sources, sources, strict=True))
        for value, array, direct in zip(graph.results, arrays, self._writes_directly, strict=True):
            if direct:
                by_value[value] = array
        for value, array, direct in zip(graph.results, arrays, self._writes_directly, strict=True):
            if not direct:
                array[...] = by_value[value] if value.data is None else value.data


class _WorkingMemory:
    """Arenas and tensor handles of one execution at a time."""

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
            name: self._allocate(sessions[name], size)
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
        self.steps = [
            (
                execute,
                [None if v is None else _handle_of(v, handles) for v in layer.inputs],
                [handles[v] for v in layer.outputs],
            )
            for layer, execute in zip(graph.layers, executes, strict=True)
        ]

    def _allocate(self, session: BackendSession, size_bytes: int) -> Array:
        """Get an arena from a backend's allocator; it goes back with this working memory."""
        allocator = session.allocator
        where = session.backend_id
        ask = (where, np.ndarray, allocator, "allocate")
        arena = ask_method(*ask, size_bytes, ALIGNMENT_BYTES)
        weakref.finalize(self, _free, where, allocator, arena)
        fits = arena.dtype == np.uint8 and arena.shape == (size_bytes,) and arena.flags.writeable
        if not fits or (size_bytes and arena.ctypes.data % ALIGNMENT_BYTES):
            raise BackendError(
                "the allocator's memory cannot be used",
                where=f"{where} / allocate",
                expected=f"writable uint8({size_bytes},) aligned to {ALIGNMENT_BYTES} bytes",
                actual=f"{arena.dtype}{arena.shape} at {arena.ctypes.data:#x}",
            )
        return arena

    def bind(self, sources: Sequence[Array], results: Sequence[Array | None] | None) -> list[Array]:
        """Let the steps read and write the caller's arrays; make those that are missing."""
        # Plain loops, as every call and every turn of a loop in a network comes by here.
        for index, handle in enumerate(self._sources):
            handle.array = sources[index]
        bound = []
        for index, handle in enumerate(self._results):
            given = results[index] if results is not None else None
            if given is None:
                given = np.empty(*self._shapes[index])
            handle.array = given
            bound.append(given)
        return bound

    def unbind(self) -> None:
        """Forget the caller's arrays."""
        for handle in self._bound:
            handle.array = _NOTHING


_NOTHING: Array = np.empty(0, np.uint8)


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
