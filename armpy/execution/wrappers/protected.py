"""Protected mode: no callback sees what a network does with protected tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy.backend import Cancellation, MemorySource
from armpy.compiler.imported import ImportedNetwork
from armpy.errors import BackendCapabilityError, InvalidArgumentError
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.programs.staged_program import NetworkProgram, StagedProgram
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.ops.operation import Array
from armpy.types import HOST


def check_plan(plan: NetworkProgram) -> None:
    """Check that no step of a plan lets the host see a tensor.

    Raises
    ------
    BackendCapabilityError
        If shapes depend on values, there is control flow, or a tensor goes from one backend's
        memory to another's. As long as some inputs or outputs are not imported, nothing runs, and
        copies of these are no matter.
    """
    if isinstance(plan, StagedProgram):
        raise _refused("its shapes depend on values")
    network = plan.network
    graph = network.graph
    if graph.variables:
        raise _refused(f"it has variables ('{graph.variables[0].value.name}')")
    is_imported = isinstance(network, ImportedNetwork) and network.is_complete
    callers = {*graph.inputs, *graph.results}
    for layer in graph.layers:
        is_callers = not callers.isdisjoint((*layer.inputs, *layer.outputs))
        is_copy = layer.operation.name == "MemCopy"
        if is_copy and (is_imported or not is_callers):
            raise _refused(f"a tensor is copied by the host: {layer.name}")
        if not is_copy and network.backend_ids[layer.id] == HOST:
            raise _refused(f"{layer.where} runs on the host")


def protected(runs: Runs) -> Runs:
    """Execute, and prepare executions, with imported protected tensors alone."""
    run, bind = runs.run, runs.binding

    def run_protected(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        _check_tensors(sources, results)
        return run(sources, results, cancellation)

    def bind_protected(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        _check_tensors(sources, results)
        return bind(sources, results)

    return Runs(run_protected, bind_protected)


def _check_tensors(sources: Sequence[object], results: Sequence[object] | None) -> None:
    """Check the arguments for inputs and outputs."""
    for kind, tensors in (("input", sources), ("output", [None] if results is None else results)):
        for index, tensor in enumerate(tensors):
            source = tensor.memory.source if isinstance(tensor, ImportedTensor) else None
            if source is not MemorySource.DMA_BUF_PROTECTED:
                raise InvalidArgumentError(
                    "in protected mode, the host sees no tensor of a network",
                    where=f"{kind} {index}",
                    expected="an imported tensor in protected memory",
                    actual=type(tensor).__name__ if source is None else f"one in {source}",
                    fix="Import protected memory: Model.import_inputs, Model.import_outputs",
                )


def _refused(reason: str) -> BackendCapabilityError:
    """The error for a network that cannot be protected."""
    return BackendCapabilityError(f"the network cannot run in protected mode: {reason}")
