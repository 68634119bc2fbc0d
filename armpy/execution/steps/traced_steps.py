"""Steps with marks in the system's trace; made only where these are on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from armpy.core.system_trace import trace_section
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.step import Inputs, Outputs, Step
from armpy.graph import Layer
from armpy.types import BackendId


def traced_steps(measure: Measure | None) -> Measure:
    """Mark each call of a workload as a section.

    Parameters
    ----------
    measure : callable, optional
        What else is done to steps.

    Notes
    -----
    The section of a workload that enqueues ends when its call returns: waiting for the device here
    would change the order of events that the trace is to show.
    """

    def traced(step: Step, layer: Layer, backend_id: BackendId) -> Step:
        inner = step if measure is None else measure(step, layer, backend_id)
        name = f"armpy execute {backend_id}: {layer.where}"

        def execute(inputs: Inputs, outputs: Outputs) -> object:
            with trace_section(name):
                return inner.execute(inputs, outputs)

        def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
            call = inner.bind(inputs, outputs)

            def traced_call() -> object:
                with trace_section(name):
                    return call()

            return traced_call

        return replace(inner, execute=execute, bind=bind)

    return traced
