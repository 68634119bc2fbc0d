"""What backends count and measure for one network."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from armpy.backend import (
    Counter,
    CounterKind,
    IBackendProfiling,
    IBackendProfilingContext,
    IWorkload,
    IWorkloadFactory,
    LayerMeasurement,
    Measurement,
    NetworkResources,
    OptionValues,
    WorkloadInfo,
)
from armpy.errors import InvalidArgumentError
from armpy.execution import NetworkProperties, Runtime
from armpy.ops.operation import Operation
from armpy.profiling import CounterValue, Profiler, to_chrome_trace, to_json
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    Handles,
    Outputs,
    runtime_of,
)
from armpy_testing.models.networks import diamond, floats

X = {"x": floats(-1, 0, 2, 5)}
UPLOADED = Counter("bytes uploaded", "B", CounterKind.TOTAL, "What goes to the device.")
QUEUE = Counter("queue length", kind=CounterKind.GAUGE)


class Counting(FakeBackend):
    """Counts executions of its layers, and says what it was asked in order."""

    def __init__(
        self,
        counters: Sequence[Counter] = (UPLOADED, QUEUE),
        name: str = "Npu",
        operations: Collection[type] | None = None,
    ) -> None:
        super().__init__(name, operations)
        self.counters = counters
        self.asked: list[tuple[str, object]] = []

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        self.asked.append(("context", profiling))
        self.profiling = profiling
        for counter in self.counters:
            profiling.declare_counter(counter)
        return None

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.asked.append(("factory", network.profiling))
        return Workloads(super().create_workload_factory(network), network.profiling)


class Workloads(IWorkloadFactory):
    """Another factory's workloads, which count."""

    def __init__(self, right: IWorkloadFactory, profiling: IBackendProfiling | None) -> None:
        self.right, self.profiling = right, profiling

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return Workload(self.right.create_workload(operation, info), self.profiling)


class Workload(IWorkload):
    def __init__(self, right: IWorkload, profiling: IBackendProfiling | None) -> None:
        self.right, self.profiling = right, profiling

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self.right.execute(inputs, outputs)
        if self.profiling is not None:
            self.profiling.add_to_counter("bytes uploaded", 16)
            self.profiling.add_to_counter("queue length", 3)


def profiler_of(runtime: Runtime, network: int) -> Profiler:
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    return profiler


def profiles_of(*backends: Counting) -> tuple[Profiler, list[IBackendProfiling]]:
    """The empty profile of a network that these backends run, and the way of each into it."""
    runtime = runtime_of(*backends, profiling=True)
    profiler = profiler_of(runtime, runtime.load_network(diamond()))
    profiler.clear()
    return profiler, [backend.profiling for backend in backends]


def profile(*counters: Counter) -> tuple[Profiler, IBackendProfiling]:
    """The empty profile of a network, and its backend's way into it with these counters."""
    profiler, (profiling,) = profiles_of(Counting(counters))
    return profiler, profiling


def values(profiler: Profiler) -> dict[str, float]:
    return {counter.name: counter.value for counter in profiler.counters}


def test_a_backend_is_given_its_way_into_the_profile_of_each_network() -> None:
    backend = Counting()
    runtime = runtime_of(backend)
    first, second, third = (
        runtime.load_network(diamond(), NetworkProperties(profiling=is_profiled))
        for is_profiled in (True, True, False)
    )
    asked = [name for name, _ in backend.asked]
    assert asked == ["context", "factory", "context", "factory", "factory"]
    objects = [profiling for _, profiling in backend.asked]
    assert objects[0] is objects[1]
    assert objects[2] is objects[3]
    assert objects[0] is not objects[2]
    assert objects[4] is None
    runtime.enqueue_workload(first, X)
    assert values(profiler_of(runtime, first)) == {"bytes uploaded": 64, "queue length": 3}
    assert values(profiler_of(runtime, second)) == {"bytes uploaded": 0, "queue length": 0}
    assert runtime.get_profiler(third) is None


def test_totals_add_up_and_gauges_are_set() -> None:
    profiler, profiling = profile(UPLOADED, QUEUE)
    for value in (1, 2.5):
        profiling.add_to_counter("bytes uploaded", value)
        profiling.add_to_counter("queue length", value)
    total, gauge = profiler.counters
    assert total == CounterValue(
        "Npu", "bytes uploaded", "B", CounterKind.TOTAL, "What goes to the device.", 3.5
    )
    assert (gauge.kind, gauge.value) == (CounterKind.GAUGE, 2.5)
    profiler.clear()
    assert values(profiler) == {"bytes uploaded": 0, "queue length": 2.5}


WRONG: list[tuple[Any, str]] = [  # Any: wrong types
    (Counter("bytes uploaded", "KiB"), "another counter of this name.*Expected total of unit 'B'"),
    (Counter(""), "has no name.*a name"),
    (Counter(7), "is not text"),  # type: ignore[arg-type]  # wrong
    (Counter("x", kind="total"), "a CounterKind"),  # type: ignore[arg-type]  # wrong
]


@pytest.mark.parametrize(("counter", "text"), WRONG)
def test_counters_that_cannot_be_are_refused(counter: Counter, text: str) -> None:
    _, profiling = profile(UPLOADED)
    with pytest.raises(InvalidArgumentError, match=text):
        profiling.declare_counter(counter)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bytes sent", 1, "no such counter was declared.*Expected 'bytes uploaded'"),
        ("bytes uploaded", "many", "Expected a finite number; got 'many'"),
        ("bytes uploaded", float("nan"), "Expected a finite number; got nan"),
    ],
)
def test_values_that_cannot_be_are_refused(name: str, value: Any, text: str) -> None:  # Any: wrong
    profiler, profiling = profile(UPLOADED)
    with pytest.raises(InvalidArgumentError, match=text):
        profiling.add_to_counter(name, value)
    assert values(profiler) == {"bytes uploaded": 0}


def test_contradictory_counters_leave_the_profile_without_the_backends_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Silent(Counting):
        def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
            return FakeBackend.create_workload_factory(self, network)

    runtime = runtime_of(Silent([UPLOADED, Counter("bytes uploaded", "KiB")]), profiling=True)
    network = runtime.load_network(diamond())
    runtime.enqueue_workload(network, X)
    assert "Npu / create_backend_profiling_context" in caplog.text
    assert "another counter of this name was declared" in caplog.text
    assert profiler_of(runtime, network).summary().num_executions == 1


def test_counters_are_in_the_json_and_their_changes_in_the_trace() -> None:
    runtime = runtime_of(Counting([UPLOADED, QUEUE]), profiling=True)
    network = runtime.load_network(diamond())
    runtime.enqueue_workload(network, X)
    profiler = profiler_of(runtime, network)
    counters = json.loads(to_json(profiler))["counters"]
    assert counters[0] == {
        "backend": "Npu",
        "name": "bytes uploaded",
        "unit": "B",
        "kind": "total",
        "description": "What goes to the device.",
        "value": 64.0,
    }
    trace = json.loads(to_chrome_trace(profiler))["traceEvents"]
    changes = [e for e in trace if e["ph"] == "C" and e["name"] == "bytes uploaded"]
    assert [change["args"] for change in changes] == [
        {"bytes uploaded": value} for value in (16, 32, 48, 64)
    ]
    assert [c["ts"] for c in changes] == sorted(c["ts"] for c in changes)
    (whole,) = [e for e in trace if e["name"] == "Execute"]
    assert all(whole["ts"] <= c["ts"] <= whole["ts"] + whole["dur"] for c in changes)


def test_events_are_added_as_they_come() -> None:
    profiler, profiling = profile()
    profiling.add_event(Measurement("upload", 10, 2, 7, {"bytes": 4}))
    profiling.add_event(
        LayerMeasurement("Tanh 't'", 12, 1, 7, operation="Tanh", layer="t", kernel="tanh_f32")
    )
    upload, tanh = profiler.events
    assert (upload.name, upload.backend, upload.duration_us) == ("upload", "Npu", 2.0)
    assert (tanh.operation, tanh.layer, tanh.kernel) == ("Tanh", "t", "tanh_f32")


ODD: list[Any] = [  # Any: wrong types
    "upload",
    Measurement("upload", float("nan"), 1),
    Measurement("upload", 0, -1),
    Measurement("upload", 0, "long"),  # type: ignore[arg-type]  # wrong
    LayerMeasurement("upload", 0, 1, layer=3),  # type: ignore[arg-type]  # wrong
]


@pytest.mark.parametrize("event", ODD)
def test_events_that_cannot_be_are_refused(event: Measurement) -> None:
    profiler, profiling = profile()
    with pytest.raises(InvalidArgumentError, match=r"the measurement cannot be used"):
        profiling.add_event(event)
    assert not profiler.events


def test_threads_lose_no_counts() -> None:
    profiler, profiling = profile(UPLOADED)

    def count() -> None:
        for _ in range(1000):
            profiling.add_to_counter("bytes uploaded", 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(profiler) == {"bytes uploaded": 4000}
