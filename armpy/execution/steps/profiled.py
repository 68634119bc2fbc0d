"""Observed steps: the layers of a program with their time taken, marked in a trace, or logged."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from armpy.core.system_trace import trace_section
from armpy.core.vlog import vlog
from armpy.execution.steps.step import Inputs, Outputs, Step
from armpy.execution.steps.watched_steps import waiting
from armpy.graph import Layer
from armpy.profiling import (
    EventKind,
    EventLabel,
    LayerDetails,
    ProfilingDetails,
    TensorDetails,
)
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.profiling import Profiler

Measure: TypeAlias = Callable[[Step, Layer, BackendId], Step]
"""Gives the step of a layer with its time taken."""


def measure_for(
    profiler: Profiler | None,
    graph: str,  # what the control flow that runs the program calls it; empty for the outermost one
) -> Measure | None:
    """Return the measurement of a program's steps; None without a profile."""
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

        def timed(call: Callable[..., object]) -> Callable[..., None]:
            def execute(*handles: object) -> None:
                started = clock()
                call(*handles)
                record(label, started, clock())

            return execute

        # Enqueued work of a device counts until it is done.
        return _around(waiting(backend_id, step), timed)

    return measured


def traced_steps(
    measure: Measure | None,  # what else is done to steps
) -> Measure:
    """Mark each call of a workload as a section.

    The section of a workload that enqueues ends when its call returns: waiting for the device here
    would change the order of events that the trace is to show.
    """

    def traced(step: Step, layer: Layer, backend_id: BackendId) -> Step:
        inner = step if measure is None else measure(step, layer, backend_id)
        name = f"armpy execute {backend_id}: {layer.where}"

        def marked(call: Callable[..., object]) -> Callable[..., object]:
            def execute(*handles: object) -> object:
                with trace_section(name):
                    return call(*handles)

            return execute

        return _around(inner, marked)

    return traced


def logged_steps(
    measure: Measure | None,  # what else is done to steps
    processors: Collection[BackendId],  # ids of the backends that execute on a processor
) -> Measure:
    """Log each execution of a layer on a processor."""

    def logged(step: Step, layer: Layer, backend_id: BackendId) -> Step:
        inner = step if measure is None else measure(step, layer, backend_id)
        if backend_id not in processors:
            return inner
        where = layer.where

        def recorded(call: Callable[..., object]) -> Callable[..., object]:
            def execute(*handles: object) -> object:
                vlog("cpuexe", "%s: %s", backend_id, where)
                return call(*handles)

            return execute

        # Logged one after the other, as on a processor.
        return _around(waiting(backend_id, inner), recorded)

    return logged


def _around(step: Step, wrap: Callable[[Callable[..., object]], Callable[..., object]]) -> Step:
    """The step with its execution wrapped, whether the handles are bound before or not."""

    def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
        return wrap(step.bind(inputs, outputs))

    return replace(step, execute=wrap(step.execute), bind=bind, for_arrays=None)


def _described(layer: Layer, backend_id: BackendId, graph: str) -> LayerDetails:
    """Description of a layer, for profiles that have it."""
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
