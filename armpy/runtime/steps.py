"""The steps of a plan: what each layer's backend made of it, and errors that name the layer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from armpy.backend import ITensorHandle, IWorkload, WorkloadInfo
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Graph, Layer, Value
from armpy.ops.backend_internal import MemCopy
from armpy.ops.control_flow import ControlFlow
from armpy.optimizer import OptimizedNetwork
from armpy.plugins.boundary import (
    ask_method,
    describe,
    let_user_interrupt,
    named_error,
    read_backend,
)
from armpy.profiling import Profiler
from armpy.records import dataclass
from armpy.runtime.host import CopyWorkloadFactory
from armpy.runtime.session import BackendSession
from armpy.runtime.shared_memory import SharedMemory
from armpy.types import HOST, BackendId

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


def prepare_steps(
    network: OptimizedNetwork,
    sessions: Mapping[BackendId, BackendSession],
    profiler: Profiler | None = None,
) -> list[Execute]:
    """Let the backends prepare every layer.

    Parameters
    ----------
    sessions : mapping of str to BackendSession
        By backend id.
    profiler : Profiler, optional
        Is told how long each step takes.

    Returns
    -------
    list of callable
        The ``execute`` method of each layer's workload.

    Raises
    ------
    PreparationError
        If backends fail to make workloads; it holds all of them, so that they move at once.
    """
    executes: list[Execute] = []
    failures: list[PreparationFailure] = []
    for layer in network.graph.layers:
        backend_id = network.backend_ids[layer.id]
        try:
            execute = _prepare(network, layer, sessions[backend_id])
        except ArmpyError as error:
            failures.append(PreparationFailure(layer, backend_id, error))
            continue
        if profiler is not None:
            execute = _measured(execute, profiler, layer.where, backend_id)
        executes.append(execute)
    if failures:
        raise PreparationError(failures)
    return executes


def _prepare(network: OptimizedNetwork, layer: Layer, session: BackendSession) -> Execute:
    """Make the workload of one layer."""
    backend_id = session.backend_id
    factory = session.workloads
    if isinstance(layer.operation, MemCopy):
        factory = CopyWorkloadFactory(_home_of(network, layer.inputs[0]), backend_id)
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


def _home_of(network: OptimizedNetwork, value: Value | None) -> BackendId:
    """Whose memory a value is written in."""
    for layer in network.graph.layers:
        if value in layer.outputs:
            return network.backend_ids[layer.id]
    return HOST


def _measured(execute: Execute, profiler: Profiler, name: str, backend_id: BackendId) -> Execute:
    """The same step with its time taken."""

    def timed(inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]) -> None:
        started = time.perf_counter()
        execute(inputs, outputs)
        profiler.add(name, backend_id, started, time.perf_counter())

    return timed


def memory_of(
    network: OptimizedNetwork, sessions: Mapping[BackendId, BackendSession]
) -> list[SharedMemory]:
    """What the backends of a network's layers hold while it runs."""
    graph: Graph = network.graph
    used = dict.fromkeys(network.backend_ids[layer.id] for layer in graph.layers)
    held = (sessions[backend_id].memory for backend_id in used)
    return [memory for memory in held if memory is not None]


def raise_for_step(network: OptimizedNetwork, step: int, error: BaseException) -> NoReturn:
    """Raise what a step raised, with the names of its backend and layer.

    Raises
    ------
    BackendError
        In place of whatever is no `ArmpyError`; a user's interrupt is raised as it is.
    """
    let_user_interrupt(error)
    layers = network.graph.layers
    layer = layers[min(step, len(layers) - 1)]  # a signal's handler may raise behind the last one
    backend_id, where = network.backend_ids[layer.id], layer.where
    if backend_id != HOST or not isinstance(layer.operation, ControlFlow):
        where = f"{backend_id} / {where}"
    if isinstance(error, ArmpyError):
        raise named_error(where, error) from error.__cause__
    raise BackendError(f"the workload raised {describe(error)}", where=where) from error
