"""Runs a fully shaped network: a flat list of prepared steps over planned memory."""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    HostTensorHandle,
    ICustomAllocator,
    ITensorHandle,
    IWorkload,
    WorkloadInfo,
)
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Layer, Value
from armpy.logs import wants_traceback
from armpy.ops import MemCopy
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.optimizer.bridge import HOST
from armpy.plugins.boundary import (
    ask_method,
    call_method,
    describe,
    let_user_interrupt,
    named_error,
    read_backend,
)
from armpy.profiling import Profiler
from armpy.runtime.host import CopyWorkloadFactory
from armpy.runtime.session import BackendSession
from armpy.tensor import TensorInfo
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")

MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""

Execute: TypeAlias = Callable[[Sequence[ITensorHandle | None], Sequence[ITensorHandle]], None]


@dataclass(frozen=True, slots=True)
class PreparationFailure:
    """A layer that a backend could not prepare, and what it raised."""

    layer: Layer
    backend_id: BackendId
    cause: ArmpyError

    def __str__(self) -> str:
        return f"{self.backend_id} could not prepare {self.layer.where}: {self.cause}"


class PreparationError(Exception):
    """Backends could not prepare some layers; caught by whoever can move these elsewhere."""

    def __init__(self, failures: Sequence[PreparationFailure]) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures


def _measured(execute: Execute, profiler: Profiler, name: str, backend_id: BackendId) -> Execute:
    """The same step with its time taken."""

    def timed(inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]) -> None:
        started = time.perf_counter()
        execute(inputs, outputs)
        profiler.add(name, backend_id, started, time.perf_counter())

    return timed


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
        self._executes: list[Execute] = []
        failures: list[PreparationFailure] = []
        for layer in graph.layers:
            try:
                execute = self._prepare(layer)
                if profiler is not None:
                    where = layer.where, network.backend_ids[layer.id]
                    execute = _measured(execute, profiler, *where)
                self._executes.append(execute)
            except ArmpyError as error:
                failures.append(PreparationFailure(layer, network.backend_ids[layer.id], error))
        if failures:
            raise PreparationError(failures)
        self._idle: deque[_WorkingMemory] = deque(maxlen=MAX_IDLE_MEMORIES)
        used = dict.fromkeys(network.backend_ids[layer.id] for layer in graph.layers)
        held = [sessions[backend_id].memory for backend_id in used]
        self._held = [shared for shared in held if shared is not None]
        made = {value for layer in graph.layers for value in layer.outputs}
        self._writes_directly: list[bool] = []
        seen: set[Value] = set()
        for value in graph.results:
            self._writes_directly.append(value in made and value not in seen)
            seen.add(value)

    def _prepare(self, layer: Layer) -> Execute:
        """Make the workload of one layer."""
        backend_id = self.network.backend_ids[layer.id]
        factory = self._sessions[backend_id].workloads
        if isinstance(layer.operation, MemCopy):
            factory = CopyWorkloadFactory(self._home_of(layer.inputs[0]), backend_id)
        info = WorkloadInfo(
            layer.name,
            layer.input_infos,
            layer.output_infos,
            tuple(None if value is None else value.data for value in layer.inputs),
        )
        ask = (backend_id, IWorkload, factory, "create_workload")
        workload = ask_method(*ask, layer.operation, info)
        kind: type[Execute] = Callable  # type: ignore[assignment]  # a class to isinstance
        return read_backend(backend_id, workload, "execute", kind)

    def _home_of(self, value: Value | None) -> BackendId:
        """Whose memory a value is written in."""
        for layer in self.network.graph.layers:
            if value in layer.outputs:
                return self.network.backend_ids[layer.id]
        return HOST

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def result_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each result."""
        return tuple(value.info for value in self.network.graph.results)

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
        if not self._held:
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
        except ArmpyError as error:
            raise named_error(self._where(step), error) from error.__cause__
        except BaseException as error:
            let_user_interrupt(error)
            text = f"the workload raised {describe(error)}"
            raise BackendError(text, where=self._where(step)) from error
        finally:
            memory.unbind()
        self._finish(memory, sources, arrays)
        self._idle.append(memory)
        return arrays

    def _new_memory(self) -> _WorkingMemory:
        """Allocate what one execution needs."""
        return _WorkingMemory(self.network, self._executes, self._sessions, self._writes_directly)

    def _where(self, step: int) -> str:
        """Backend and layer of a step, for messages."""
        layer = self.network.graph.layers[step]
        return f"{self.network.backend_ids[layer.id]} / {layer.where}"

    def _finish(
        self, memory: _WorkingMemory, sources: Sequence[Array], arrays: list[Array]
    ) -> None:
        """Fill results that no layer writes: passed-through inputs, constants, repeats."""
        if all(self._writes_directly):
            return
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
        for handle, array in zip(self._sources, sources, strict=True):
            handle.array = array
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
        for handle in self._sources:
            handle.array = _NOTHING
        for handle in self._results:
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
