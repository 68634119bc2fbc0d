"""Measured steps: the layers of a plan with their time taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from armpy.graph import Layer
from armpy.profiling import EventKind, EventLabel, Profiler
from armpy.runtime.steps import Inputs, Outputs, Step
from armpy.types import BackendId

Measure: TypeAlias = Callable[[Step, Layer, BackendId], Step]
"""Gives the step of a layer with its time taken."""


def measure_for(profiler: Profiler | None, graph: str) -> Measure | None:
    """What measures the steps of a plan; None without a profile.

    Parameters
    ----------
    profiler : Profiler, optional
    graph : str
        What the control flow that runs the plan calls it; empty for the outermost one.
    """
    if profiler is None:
        return None

    def measured(step: Step, layer: Layer, backend_id: BackendId) -> Step:
        """The same step with its time taken."""
        kind, operation = EventKind.LAYER, layer.operation.name
        label = EventLabel(kind, layer.where, backend_id, operation, layer.name, graph)
        clock, record = time.perf_counter, profiler.record

        def timed(inputs: Inputs, outputs: Outputs) -> None:
            started = clock()
            step.execute(inputs, outputs)
            record(label, started, clock())

        def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
            call = step.bind(inputs, outputs)

            def timed_call() -> None:
                started = clock()
                call()
                record(label, started, clock())

            return timed_call

        return Step(timed, bind)

    return measured
