"""Runs a fully shaped network: a flat list of prepared steps over planned memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    HostTensorHandle,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    WorkloadInfo,
)
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Layer, Value
from armpy.ops import MemCopy
from armpy.ops.operation import Array, located
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.runtime.boundary import call_backend
from armpy.tensor import TensorInfo
from armpy.types import BackendId

MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""

Execute: TypeAlias = Callable[[Sequence[ITensorHandle | None], Sequence[ITensorHandle]], None]


@dataclass(frozen=True, slots=True)
class PreparationFailure:
    """A layer that a backend could not prepare, and what it raised."""

    layer: Layer
    backend_id: BackendId
    cause: Exception

    def __str__(self) -> str:
        return f"{self.backend_id} could not prepare {self.layer.where}: {self.cause}"


class PreparationError(Exception):
    """Backends could not prepare some layers; caught by whoever can move these elsewhere."""

    def __init__(self, failures: Sequence[PreparationFailure]) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures


class _CopyWorkload(IWorkload):
    """Executes a MemCopy between two backends' memories."""

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Map the source and copy it into the target."""
        source = inputs[0]
        if source is not None:
            outputs[0].copy_in_from(source.map())
            source.unmap()


class StaticPlan:
    """The prepared steps of one optimised network, for executions side by side.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    factories : dict of str to IWorkloadFactory
        By backend id.

    Raises
    ------
    PreparationError
        If backends fail to make workloads; it holds all of them, so that they move at once.
    """

    def __init__(
        self, network: OptimizedNetwork, factories: dict[BackendId, IWorkloadFactory]
    ) -> None:
        self.network = network
        self._factories = factories
        graph = network.graph
        self._workloads: list[IWorkload] = []
        failures: list[PreparationFailure] = []
        for layer in graph.layers:
            try:
                self._workloads.append(self._prepare(layer))
            except Exception as error:  # noqa: BLE001 - plugin boundary: the layer moves on
                failures.append(PreparationFailure(layer, network.backend_ids[layer.id], error))
        if failures:
            raise PreparationError(failures)
        self._idle: deque[_WorkingMemory] = deque(maxlen=MAX_IDLE_MEMORIES)
        made = {value for layer in graph.layers for value in layer.outputs}
        self._writes_directly: list[bool] = []
        seen: set[Value] = set()
        for value in graph.results:
            self._writes_directly.append(value in made and value not in seen)
            seen.add(value)

    def _prepare(self, layer: Layer) -> IWorkload:
        """Make the workload of one layer."""
        if isinstance(layer.operation, MemCopy):
            return _CopyWorkload()
        backend_id = self.network.backend_ids[layer.id]
        info = WorkloadInfo(
            layer.name,
            layer.input_infos,
            layer.output_infos,
            tuple(None if value is None else value.data for value in layer.inputs),
        )
        workload = self._factories[backend_id].create_workload(layer.operation, info)
        if not isinstance(workload, IWorkload):
            raise BackendError(f"create_workload returned {workload!r}")
        return workload

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
            raise located(lambda: self._where(step), error) from error.__cause__
        except Exception as error:  # plugin boundary: raised again with the layer's name
            raise BackendError(f"the workload raised {error!r}", where=self._where(step)) from error
        finally:
            memory.unbind()
        self._finish(memory, sources, arrays)
        self._idle.append(memory)
        return arrays

    def _new_memory(self) -> _WorkingMemory:
        """Allocate what one execution needs."""
        return _WorkingMemory(self.network, self._workloads, self._factories, self._writes_directly)

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
        workloads: Sequence[IWorkload],
        factories: dict[BackendId, IWorkloadFactory],
        writes_directly: Sequence[bool],
    ) -> None:
        graph = network.graph
        handles: dict[Value, ITensorHandle] = {}
        arenas = {name: _aligned(size) for name, size in network.memory.arena_bytes.items()}
        for value, (name, offset) in network.memory.offsets.items():
            memory = arenas[name][offset : offset + value.info.size_bytes]
            create = factories[name].create_tensor_handle
            handles[value] = call_backend(name, create, value.info, memory)
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
                workload.execute,
                [None if v is None else _handle_of(v, handles) for v in layer.inputs],
                [handles[v] for v in layer.outputs],
            )
            for layer, workload in zip(graph.layers, workloads, strict=True)
        ]

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


def _handle_of(value: Value, handles: dict[Value, ITensorHandle]) -> ITensorHandle:
    """The handle of a value; constants get theirs when first read."""
    if value not in handles and value.data is not None:
        handles[value] = HostTensorHandle(value.info, value.data)
    return handles[value]


def _aligned(size_bytes: int) -> Array:
    """Uninitialised memory that begins at a multiple of `ALIGNMENT_BYTES`."""
    raw = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size_bytes]
