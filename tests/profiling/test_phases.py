"""Trace phases of events, and spans of OpenTelemetry in applications that trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, TensorInfo
from armpy.execution import NetworkProperties, Runtime
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.profiling import EventKind, Profiler, ProfilingEvent, TracePhase, to_chrome_trace
from armpy.profiling.phases import phase_of
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of

X = np.ones(2, np.float32)
PROFILED = NetworkProperties(profiling=True)


def product() -> Network:
    """``y = (x + x) * x``: with a device that adds, two kinds of memory."""
    net = Network()
    x = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    total = net.add(ElementwiseBinary(), x, x, name="total")
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MUL), total, x, name="product"))
    return net


def adder() -> BufferDevice:
    return BufferDevice("Adder", [BinaryOperation.ADD])


@pytest.mark.parametrize(
    ("kind", "name", "operation", "expected"),
    [
        (EventKind.LOAD, "validate", "", TracePhase.VALIDATION),
        (EventKind.LOAD, "compile", "", TracePhase.COMPILATION),
        (EventKind.LOAD, "assign layers", "", TracePhase.COMPILATION),
        (EventKind.LOAD, "prepare workload", "", TracePhase.PREPARATION),
        (EventKind.LOAD, "make working memory", "", TracePhase.PREPARATION),
        (EventKind.LAYER, "ElementwiseBinary 'total'", "ElementwiseBinary", TracePhase.EXECUTION),
        (EventKind.LAYER, "MemCopy 'x'", "MemCopy", TracePhase.TRANSFER),
        (EventKind.EXECUTION, "Execute", "", TracePhase.EXECUTION),
        (EventKind.QUEUED, "a free thread", "", TracePhase.QUEUEING),
        (EventKind.WAITING, "variables", "", TracePhase.QUEUEING),
    ],
)
def test_each_event_belongs_to_a_phase(
    kind: EventKind, name: str, operation: str, expected: TracePhase
) -> None:
    assert phase_of(kind, name, operation) is expected


def test_a_trace_has_every_phase_of_a_network() -> None:
    with runtime_of(adder()) as runtime:
        model = armpy.Model(product(), runtime, properties=PROFILED)
        model.run({"x": X})
        model.start({"x": X}).result()
        assert model.profiler is not None
        trace = json.loads(to_chrome_trace(model.profiler))["traceEvents"]
    phases = {event["args"]["phase"] for event in trace if event["ph"] in "Xb"}
    assert phases == {phase.value for phase in TracePhase}
    copies = [event for event in trace if event.get("args", {}).get("phase") == "transfer"]
    assert copies
    assert all("MemCopy" in event["name"] for event in copies)


# OpenTelemetry.


@pytest.fixture(scope="module")
def exporter() -> Any:  # Any: OpenTelemetry's
    """What keeps all spans; a process has one provider."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: Any) -> Iterator[Any]:
    exporter.clear()
    yield exporter
    exporter.clear()


def named(spans: Any, name: str) -> Any:
    """The only span of a name."""
    (only,) = [span for span in spans.get_finished_spans() if span.name == name]
    return only


def test_layers_are_spans_within_the_execution_within_the_application_s_span(spans: Any) -> None:
    from opentelemetry import trace

    with Runtime() as runtime:
        model = armpy.Model(product(), runtime, properties=PROFILED)
        spans.clear()
        with trace.get_tracer("application").start_as_current_span("request"):
            model.run({"x": X})
    request, execute = named(spans, "request"), named(spans, "Execute")
    assert execute.parent.span_id == request.context.span_id
    assert execute.attributes["armpy.phase"] == "execution"
    layers = [s for s in spans.get_finished_spans() if s.attributes.get("armpy.kind") == "layer"]
    assert layers
    for span in layers:
        assert span.parent.span_id == execute.context.span_id
        assert span.attributes["armpy.backend"]
        # The two clocks are compared once, to within their resolution.
        assert execute.start_time - 100_000 <= span.start_time <= span.end_time
        assert span.end_time <= execute.end_time + 100_000


def test_an_execution_that_fails_is_a_span_that_failed(spans: Any) -> None:
    npu = FakeBackend("Npu", faults={"execute": armpy.BackendError("on fire")})
    with runtime_of(npu) as runtime:
        model = armpy.Model(product(), runtime, properties=PROFILED)
        with pytest.raises(armpy.BackendError, match="on fire"):
            model.run({"x": X})
    execute = named(spans, "Execute")
    assert not execute.status.is_ok
    assert "on fire" in execute.status.description


def test_a_backends_own_events_are_spans_within_the_current_one(spans: Any) -> None:
    from opentelemetry import trace

    event = ProfilingEvent("kernel", "Npu", 10.0, 2.0, 7, kernel="gemm")
    Profiler().add_event(event)
    assert not spans.get_finished_spans()
    with trace.get_tracer("application").start_as_current_span("request"):
        Profiler().add_event(event)
    kernel = named(spans, "kernel")
    assert kernel.parent.span_id == named(spans, "request").context.span_id
    assert kernel.end_time - kernel.start_time == 2000
    assert dict(kernel.attributes) == {
        "armpy.phase": "execution",
        "armpy.kind": "command",
        "armpy.backend": "Npu",
        "armpy.kernel": "gemm",
    }
