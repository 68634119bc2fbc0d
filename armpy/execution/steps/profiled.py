"""Measured steps: the layers of a plan with their time taken, or marked in the system's trace."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from armpy.core.system_trace import trace_section
from armpy.execution.steps.step import Inputs, Outputs, Step, waiting
from armpy.graph import Layer
from armpy.profiling import (
    EventKind,
    EventLabel,
    LayerDetails,
    Profiler,
    ProfilingDetails,
    TensorDetails,
)
from armpy.tensor import TensorInfo
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
        if profiler.details is not ProfilingDetails.UNDEFINED:
            profiler.describe(_described(layer, backend_id, graph))
        kind, operation = EventKind.LAYER, layer.operation.name
        label = EventLabel(kind, layer.where, backend_id, operation, layer.name, graph)
        # Looked up once, as every layer of every execution comes by.
        clock, record = time.perf_counter, profiler.record

        # What a device has been told to do counts until it is done.
        step = waiting(backend_id, step)

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

        return Step(timed, bind, step.free_idle, is_bound=step.is_bound)

    return measured


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


def _described(layer: Layer, backend_id: BackendId, graph: str) -> LayerDetails:
    """What a layer is, for profiles that tell it."""
    operation = layer.operation
    names = [operation.input_name(index) for index in range(len(layer.inputs))]
    return LayerDetails(
        layer.name,
        operation.name,
        backend_id,
        graph,
        tuple(
            _tensor(name, info)
            for name, info in zip(names, layer.input_infos, strict=True)
            if info is not None
        ),
        tuple(_tensor(value.name, value.info) for value in layer.outputs),
        {
            name: text
            for name, value in operation.attributes().items()
            if (text := _text(value)) is not None
        },
    )


def _tensor(name: str, info: TensorInfo) -> TensorDetails:
    """A tensor; its shape is empty where it depends on values."""
    return TensorDetails(
        name, info.data_type.name, info.known_shape if info.is_fully_shaped else ()
    )


def _text(value: object) -> str | None:
    """An attribute as text; None for graphs, programs and other objects."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or type(value) in (bool, int, float, str):
        return str(value)
    if isinstance(value, (tuple, list)):
        texts = [_text(item) for item in value]
        return None if None in texts else "[" + ",".join(map(str, texts)) + "]"
    return None
