"""Executions and layers that write to verbose logging; made only where its tags are on."""

from __future__ import annotations

import time
from collections.abc import Sequence

from armpy.backend import Cancellation
from armpy.core.vlog import vlog
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.tensor import format_shape


def described_graph(graph: Graph) -> str:
    """A graph in a line."""
    inputs = ", ".join(f"{value.name} {value.info}" for value in graph.inputs)
    outputs = ", ".join(
        f"{name} {value.info}"
        for name, value in zip(graph.output_names, graph.outputs, strict=True)
    )
    return f"{len(graph.layers)} layers, inputs {inputs or 'none'}, outputs {outputs}"


def logged(
    runs: Runs,
    number: int,  # that identifies the network
) -> Runs:
    """The same execution, whose begin and end are logged.

    Nothing is prepared where executions are bound, so that each of them is logged.
    """
    run = runs.run

    def run_logged(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        shapes = ", ".join(format_shape(source.shape) for source in sources)
        vlog("execution", "network %d: begins with inputs %s", number, shapes)
        started = time.perf_counter()
        try:
            outputs = run(sources, results, cancellation)
        # Ctrl-C as well: a log without an end would look like an execution that hangs.
        except BaseException as error:
            taken_us = 1e6 * (time.perf_counter() - started)
            vlog("execution", "network %d: failed after %.1f us: %r", number, taken_us, error)
            raise
        taken_us = 1e6 * (time.perf_counter() - started)
        vlog("execution", "network %d: ended after %.1f us", number, taken_us)
        return outputs

    return Runs(run_logged)
