"""Executions with marks in the system's trace; made only where these are on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy.backend import Cancellation
from armpy.core.system_trace import trace_section
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.ops.operation import Array


def traced(runs: Runs, number: int) -> Runs:
    """Mark each execution of a loaded network as a section.

    Parameters
    ----------
    runs : Runs
    number : int
        Of the loaded network.
    """
    run, bind = runs
    name = f"armpy execute network {number}"

    def run_traced(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        with trace_section(name):
            return run(sources, results, cancellation)

    if bind is None:
        return Runs(run_traced)

    def bind_traced(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        execute = bind(sources, results)

        def execute_traced() -> Sequence[Array] | None:
            with trace_section(name):
                return execute()

        return execute_traced

    return Runs(run_traced, bind_traced)
