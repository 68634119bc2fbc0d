"""The steps of a program: what each layer's backend made of it, and errors that name the layer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn, TypeAlias

from armpy.backend import ITensorHandle, IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.compiler import OptimizedNetwork
from armpy.compiler.compile_timeout import in_time, next_deadline
from armpy.compiler.imported import ImportedNetwork
from armpy.core.dataclass import dataclass
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, CompilationPostponedError
from armpy.execution.memory.shared_memory import SharedMemory
from armpy.execution.steps.host_workloads import CopyWorkloadFactory
from armpy.execution.steps.session import BackendSession
from armpy.graph import Graph, Layer
from armpy.ops.backend_internal import MemCopy
from armpy.ops.control_flow import ControlFlow
from armpy.ops.operation import Array, Operation
from armpy.plugins.proxy.error_attribution import blamed
from armpy.plugins.proxy.guarded_call import (
    ask_method,
    call_method,
    let_user_interrupt,
    named_error,
    read_backend,
    workload_error,
)
from armpy.profiling import phase
from armpy.types import HOST, BackendId

_log = logging.getLogger("armpy.execution")

Inputs: TypeAlias = Sequence[ITensorHandle | None]
Outputs: TypeAlias = Sequence[ITensorHandle]

Execute: TypeAlias = Callable[[Inputs, Outputs], object]
"""Executes a layer once."""

Bind: TypeAlias = Callable[[Inputs, Outputs], Callable[[], object]]
"""Prepares many executions of a layer with the same handles."""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """Step of a program: a layer as its backend executes it, with its workload's methods."""

    execute: Execute  # may be the workload's `enqueue`
    bind: Bind
    free_idle: Callable[[], None]  # its errors are logged
    enqueues: bool = False  # whether a call may return an `ICompletion`, and work goes on after it
    is_bound: bool = False  # whether `bind` makes something of its own of handles
    for_arrays: Callable[[Sequence[Array]], object] | None = None  # executes without handles


@dataclass(frozen=True, slots=True)
class PreparationFailure:
    """Layers that a backend could not prepare, and its errors."""

    layers: tuple[Layer, ...]
    backend_id: BackendId
    cause: ArmpyError

    def __str__(self) -> str:
        others = len(self.layers) - 1
        layers = self.layers[0].where + (f" and {others} more layers" if others else "")
        return f"{self.backend_id} could not prepare {layers}: {self.cause}"


class PreparationError(Exception):
    """Backends could not prepare some layers; caught by callers that can move them."""

    def __init__(self, failures: Sequence[PreparationFailure]) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = failures


def prepare_steps(
    network: OptimizedNetwork,
    sessions: Mapping[BackendId, BackendSession],  # by backend id
    # Gives each step with its time taken; see `armpy.execution.steps.profiled`.
    measure: Callable[[Step, Layer, BackendId], Step] | None = None,
    known: Mapping[int, Step] | None = None,  # prepared steps, by layer id
) -> list[Step]:
    """Let the backends prepare every layer.

    Raises PreparationError if backends fail to make workloads; it holds all of them, so that they
    move at once.

    Returns
    -------
    list of Step
        One per layer.
    """
    steps: list[Step] = []
    failures: list[PreparationFailure] = []
    for layer in network.graph.layers:
        backend_id = network.backend_ids[layer.id]
        if known and layer.id in known:
            steps.append(known[layer.id])
            continue
        try:
            with phase("prepare workload", backend_id, layer.where):
                make = partial(_prepare, network, layer, sessions[backend_id])
                # Of control flow, it is the layers inside that backends prepare.
                deadline_s = None if backend_id == HOST else next_deadline()
                step = in_time(backend_id, deadline_s, make)
        except CompilationPostponedError:
            raise  # as while a network is optimised
        except ArmpyError as error:
            failures.append(PreparationFailure((layer,), backend_id, error))
            continue
        if measure is not None:
            step = measure(step, layer, backend_id)
        steps.append(step)
    if failures:
        raise PreparationError(failures)
    return steps


def _prepare(network: OptimizedNetwork, layer: Layer, session: BackendSession) -> Step:
    """Make the workload of one layer."""
    backend_id = session.backend_id
    factory = session.workloads
    if isinstance(layer.operation, MemCopy):
        factory = CopyWorkloadFactory(_home_of(network, layer), backend_id)
    info = WorkloadInfo(
        layer.name,
        layer.input_infos,
        layer.output_infos,
        tuple(None if value is None else value.data for value in layer.inputs),
    )
    return prepared_step(backend_id, factory, layer.operation, info)


def prepared_step(
    backend_id: BackendId, factory: IWorkloadFactory, operation: Operation, info: WorkloadInfo
) -> Step:
    """Make the workload of one operation.

    Raises ArmpyError if the backend fails.
    """
    workload = ask_method(backend_id, IWorkload, factory, "create_workload", operation, info)
    kind: type[Callable[..., object]] = Callable  # type: ignore[assignment]  # a class to isinstance
    enqueues, is_bound = _overrides(workload, "enqueue"), _overrides(workload, "bind")
    # The bound method itself: executions call it without looking it up.
    execute = read_backend(backend_id, workload, "enqueue" if enqueues else "execute", kind)
    bind = partial(ask_method, backend_id, kind, workload, "bind")
    free_idle = partial(_free_idle, backend_id, workload)
    for_arrays = ask_method(backend_id, (kind, type(None)), workload, "for_arrays")
    return Step(execute, bind, free_idle, enqueues, is_bound, for_arrays)


def _overrides(workload: IWorkload, name: str) -> bool:
    """Return whether a workload has a method of its own in the place of the contract's."""
    contract = getattr(IWorkload, name)
    return getattr(type(workload), name, contract) is not contract


def _free_idle(backend_id: BackendId, workload: IWorkload) -> None:
    """Let a workload give idle memory back; errors are only logged."""
    try:
        call_method(backend_id, workload, "free_idle_memory")
    except ArmpyError as error:
        _log.warning("%s", error, exc_info=wants_traceback(_log))


def _home_of(network: OptimizedNetwork, copy: Layer) -> BackendId:
    """Return the backend whose memory a copy is made from."""
    if isinstance(network, ImportedNetwork) and copy.id in network.copied_from:
        return network.copied_from[copy.id]
    for layer in network.graph.layers:
        if copy.inputs[0] in layer.outputs:
            return network.backend_ids[layer.id]
    return HOST


def memory_of(
    network: OptimizedNetwork, sessions: Mapping[BackendId, BackendSession]
) -> list[SharedMemory]:
    """Return the memory that the backends of a network's layers hold while it runs."""
    graph: Graph = network.graph
    used = dict.fromkeys(network.backend_ids[layer.id] for layer in graph.layers)
    held = (sessions[backend_id].memory for backend_id in used)
    return [memory for memory in held if memory is not None]


def raise_for_step(network: OptimizedNetwork, step: int, error: BaseException) -> NoReturn:
    """Raise what a step raised, with the names of its backend and layer.

    Raises BackendError in place of other errors than `ArmpyError`; a user's interrupt is raised
    unchanged.
    """
    let_user_interrupt(error)
    layers = network.graph.layers
    layer = layers[min(step, len(layers) - 1)]  # a signal's handler may raise after the last one
    backend_id, where = network.backend_ids[layer.id], layer.where
    if backend_id != HOST or not isinstance(layer.operation, ControlFlow):
        where = f"{backend_id} / {where}"
    # The core runs copies, but whose memory they read is what fails.
    if backend_id == HOST and isinstance(layer.operation, MemCopy):
        backend_id = _home_of(network, layer)
    if isinstance(error, ArmpyError):
        raise blamed(backend_id, named_error(where, error)) from error.__cause__
    raise blamed(backend_id, workload_error(backend_id, where, error)) from error
