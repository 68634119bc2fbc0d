"""Runs an execution's network with its arguments, on the thread that asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.execution.calls.invocation import Invocation
from armpy.ops.operation import Array
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.run.arguments import ExecutionArguments
from armpy_nnapi.run.execution_results import ExecutionResults
from armpy_nnapi.run.limits import TimeLimits, left_s
from armpy_nnapi.run.preparation import Preparation

if TYPE_CHECKING:
    from armpy.execution import LoadedNetwork
    from armpy_nnapi.memory_domains.memory_uses import Given, Targets

COMPUTE = "Execution.compute"
"""Name of the place in errors of a computation."""


def compute(
    compilation: Compilation,
    arguments: ExecutionArguments,
    results: ExecutionResults,
    limits: TimeLimits,
    preparation: Preparation | None,
) -> None:
    """Run with the arguments that were set, and write the outputs."""
    inputs, outputs = arguments.inputs.arrays, arguments.outputs.arrays
    network, memories, shapes = compilation.whole, arguments.memories, results.shapes
    if memories is not None or network is None or not arguments.are_in_place:
        arguments.check_left_out(COMPUTE)
        arguments.inputs.renew()
        shapes.begin()
        if memories is None:
            arrays = run_with(compilation, inputs, results, limits)
        else:
            part = compilation.network_for(inputs)
            arrays = memories.run(part, inputs, partial(_run, results, limits), COMPUTE)
        arguments.write(arrays, shapes, COMPUTE)
        return
    # A bound network has no deadline and takes no other time-out for its loops.
    is_bindable = not compilation.signature.has_control_flow and not limits.timeout_ns
    if preparation is not None and is_bindable:
        # Binding checks the arrays, plans the copies and takes working memory once for all runs.
        names = [value.name for value in network.graph.inputs]
        asked = Invocation(
            dict(zip(names, inputs, strict=True)),
            dict(zip(network.graph.output_names, outputs, strict=True)),
        )
        preparation.begin(network.bind(asked), results)
    else:
        # As every input and output has the shape that the network is prepared for.
        _run(results, limits, network, inputs, outputs)  # type: ignore[arg-type]  # all set
    shapes.note_expected()


def run_with(
    compilation: Compilation,
    arrays: Sequence[Array | None],
    results: ExecutionResults,
    limits: TimeLimits,
) -> list[Array]:
    """Run the network for these inputs."""
    network = compilation.network_for(arrays)
    return _run(results, limits, network, [array for array in arrays if array is not None])


def _run(
    results: ExecutionResults,
    limits: TimeLimits,
    network: LoadedNetwork,
    arguments: Given,
    targets: Targets | None = None,
) -> list[Array]:
    """Run a network, and measure it if that was asked for."""
    limit_s = left_s(limits.deadline_s(), COMPUTE) if limits.timeout_ns else None
    loop_s = limits.loop_timeout_s
    if not results.is_timed:
        return network.run(arguments, targets, loop_timeout_s=loop_s, deadline_s=limit_s)  # type: ignore[arg-type]  # memory is imported in the place of arrays
    return results.measure(
        lambda: network.run(arguments, targets, loop_timeout_s=loop_s, deadline_s=limit_s)  # type: ignore[arg-type]  # as above
    )
