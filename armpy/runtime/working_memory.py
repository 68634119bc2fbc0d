"""Working memory of one execution: arenas, tensor handles, and the caller's arrays."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy import empty

from armpy.backend import ALIGNMENT_BYTES, HostTensorHandle, ICustomAllocator, ITensorHandle
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Value
from armpy.logs import wants_traceback
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork
from armpy.plugins.boundary import ask_method, call_method
from armpy.runtime.control_flow import Targets
from armpy.runtime.session import BackendSession
from armpy.runtime.steps import Execute, Step, raise_for_step
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")


class WorkingMemory:
    """Arenas and tensor handles of one execution at a time.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    prepared : sequence of Step
        What each layer's backend made of it.
    sessions : mapping of str to BackendSession
        By backend id.

    Attributes
    ----------
    steps : list of tuple
        What to call for each layer, and with which handles.
    sources, results : tuple of HostTensorHandle
        Of the graph's sources and results, in order. An execution puts the caller's arrays into
        them and takes them out again.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        prepared: Sequence[Step],
        sessions: Mapping[BackendId, BackendSession],
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
        self.sources = tuple(HostTensorHandle(value.info, _NOTHING) for value in graph.sources)
        handles.update(zip(graph.sources, self.sources, strict=True))
        self.results = tuple(HostTensorHandle(value.info, _NOTHING) for value in graph.results)
        copies: list[tuple[HostTensorHandle, Value]] = []
        written = {value for layer in graph.layers for value in layer.outputs}
        for value, handle in zip(graph.results, self.results, strict=True):
            if value in written:  # a step writes the first of its results in place
                written.remove(value)
                handles[value] = handle
            else:
                copies.append((handle, value))
        self._copies = [(handle, _handle_of(value, handles)) for handle, value in copies]
        self._targets = [(h, h.info.known_shape, h.info.data_type.dtype) for h in self.results]
        self._bound = (*self.sources, *self.results)
        self._network = network
        self._prepared = prepared
        self.steps = [
            (
                step.execute,
                [None if v is None else _handle_of(v, handles) for v in layer.inputs],
                [handles[v] for v in layer.outputs],
            )
            for layer, step in zip(graph.layers, prepared, strict=True)
        ]

    def run(self, sources: Sequence[Array], results: Targets | None) -> list[Array]:
        """Execute once with some arrays in place, then forget them.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `armpy.runtime.static_plan.StaticPlan.run`.

        Returns
        -------
        list of ndarray
            Every result.

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        # Every call and every turn of a loop comes by here: functions of its own for binding
        # and unbinding, and enumerate, each cost some percent of a small network's call.
        index = 0
        for handle in self.sources:
            handle.array = sources[index]
            index += 1  # noqa: SIM113
        if results is None:
            made: list[Array] = []
            results = made
            for handle, shape, dtype in self._targets:
                handle.array = array = empty(shape, dtype)
                made.append(array)
        else:
            index = 0
            for handle in self.results:
                given = results[index]
                if given is None:
                    results[index] = given = empty(*self._targets[index][1:])
                handle.array = given
                index += 1  # noqa: SIM113
        execute: Execute
        step = 0
        try:
            for execute, ins, outs in self.steps:
                execute(ins, outs)
                step += 1
            if self._copies:
                self._copy_results()
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            raise_for_step(self._network, step, error)
        finally:
            # Whoever drops an array then is rid of its memory, whatever else is kept here.
            for handle in self._bound:
                handle.array = _NOTHING
        return results  # type: ignore[return-value]  # there is none missing any more

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Put some arrays in place for good and prepare executions with them.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `armpy.runtime.static_plan.StaticPlan.bind`.

        Returns
        -------
        callable
            Executes once; nobody else may use this working memory from now on.
        """
        for handle, array in zip(self._bound, (*sources, *results), strict=True):
            handle.array = array
        network = self._network
        calls: list[Callable[[], object]] = []
        try:
            for step, (_, ins, outs) in zip(self._prepared, self.steps, strict=True):
                calls.append(step.bind(ins, outs))
            if self._copies:
                calls.append(self._copy_results)
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            raise_for_step(network, len(calls), error)
        if len(calls) == 1:  # as most networks are that one backend takes in whole
            (call,) = calls

            def execute_one() -> None:
                try:
                    call()
                except BaseException as error:  # noqa: BLE001 - as above
                    raise_for_step(network, 0, error)

            return execute_one

        def execute_all() -> None:
            step = 0
            try:
                for call in calls:
                    call()
                    step += 1
            except BaseException as error:  # noqa: BLE001 - as above
                raise_for_step(network, step, error)

        return execute_all

    def _copy_results(self) -> None:
        """Fill results that no step writes: passed-through sources, constants, repeats."""
        for target, source in self._copies:
            target.array[...] = source.map()
            source.unmap()


_NOTHING: Array = np.empty(0, np.uint8)


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
