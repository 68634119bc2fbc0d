from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence

import pytest

from armpy.backend import (
    IBackendProfiling,
    IBackendProfilingContext,
    Measurement,
    OptionValues,
)
from armpy.errors import BackendError
from armpy.execution import Runtime
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.profiling import Profiler, to_chrome_trace
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import diamond, floats

X = floats(-1, 0, 2, 5)


class Measuring(IBackendProfilingContext):
    """Gives one list of measurements after the other."""

    def __init__(self, *measurements: object) -> None:
        self.measurements = list(measurements)
        self.enabled: list[bool] = []

    def enable_profiling(self, enabled: bool) -> None:
        self.enabled.append(enabled)

    def take_measurements(self) -> Mapping[str, float]:
        measurements = self.measurements.pop(0) if self.measurements else {}
        if isinstance(measurements, Exception):
            raise measurements
        return measurements  # type: ignore[return-value]  # wrong ones too


class Measured(FakeBackend):
    """Has a profiling context."""

    def __init__(self, context: IBackendProfilingContext) -> None:
        super().__init__("Npu")
        self.context = context
        self.asked = 0

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        self.asked += 1
        return self.context


def profiled(*backends: FakeBackend) -> tuple[Runtime, int, Profiler]:
    runtime = runtime_of(*backends, profiling=True)
    network = runtime.load_network(diamond())
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    return runtime, network, profiler


def test_profiling_is_off_by_default_and_then_nothing_is_made_or_measured() -> None:
    backend = Measured(Measuring())
    runtime = runtime_of(backend)
    network = runtime.load_network(diamond())
    assert runtime.get_profiler(network) is None
    prepared = runtime.get_network(network).latest
    assert prepared is not None
    assert isinstance(prepared.program, CompiledProgram)
    assert {step.execute.__name__ for step in prepared.program.steps.values()} == {"execute"}
    assert backend.asked == 0


def test_every_step_and_every_execution_is_an_event() -> None:
    runtime, network, profiler = profiled(FakeBackend("Npu"))
    assert not profiler.events
    for _ in range(2):
        runtime.enqueue_workload(network, {"x": X})
    steps = [
        ("Activation 'top'", "Npu"),
        ("ElementwiseBinary 'left'", "Npu"),
        ("ElementwiseBinary 'right'", "Npu"),
        ("ElementwiseBinary 'bottom'", "Npu"),
        ("Execute", ""),
    ]
    assert [(event.name, event.backend) for event in profiler.events] == 2 * steps
    assert {event.thread for event in profiler.events} == {threading.get_ident()}
    *inner, whole = profiler.events[:5]
    assert all(event.duration_us >= 0 for event in inner)
    assert all(whole.start_us <= event.start_us for event in inner)
    assert sum(event.duration_us for event in inner) <= whole.duration_us
    profiler.clear()
    assert not profiler.events


def filled() -> Profiler:
    """Three events of known times."""
    profiler = Profiler()
    profiler.add("conv", "Npu", 1.0, 1.5)
    profiler.add("relu", "Npu", 2.0, 2.25)
    profiler.add("conv", "Npu", 3.0, 4.0)
    return profiler


def test_the_trace_has_the_form_that_trace_viewers_read() -> None:
    profiler = filled()
    profiler.add("Execute", "", 0.5, 4.5)
    trace = json.loads(to_chrome_trace(profiler))
    assert list(trace) == ["traceEvents", "otherData"]
    first, *_, last = trace["traceEvents"]
    assert first == {
        "name": "conv",
        "cat": "Npu",
        "ph": "X",
        "ts": 1e6,
        "dur": 0.5e6,
        "pid": 0,
        "tid": threading.get_ident(),
        "args": {"phase": "execution"},
    }
    assert last["cat"] == "armpy"


def test_only_so_many_events_are_kept_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("armpy.profiling.profiler.MAX_EVENTS", 2)
    profiler = filled()
    assert (len(profiler.events), profiler.num_dropped) == (2, 1)
    profiler.clear()
    assert profiler.num_dropped == 0


def test_threads_may_add_to_one_profile() -> None:
    runtime, network, profiler = profiled()
    threads = [
        threading.Thread(
            target=lambda: [runtime.enqueue_workload(network, {"x": X}) for _ in range(20)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = {s.name: s.count for s in profiler.statistics()}
    assert counts["Execute"] == counts["Activation 'top'"] == 80


class Scripted(IBackendProfilingContext):
    """Gives one list of events after the other."""

    def __init__(self, *events: object) -> None:
        self.events = list(events)

    def take_events(self) -> Sequence[Measurement]:
        return self.events.pop(0) if self.events else ()  # type: ignore[return-value]  # wrong ones too


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (None, "raised TypeError"),
        ([1], "raised AttributeError"),
        ([Measurement("kernel", 0.0, "long")], "raised ValueError"),  # type: ignore[arg-type]  # wrong
    ],
)
def test_wrong_events_are_an_error_that_names_the_backend(wrong: object, text: str) -> None:
    _, _, profiler = profiled(Measured(Scripted(wrong)))
    with pytest.raises(BackendError, match=f"^Npu / take_events: .*{text}"):
        profiler.statistics()
    assert not profiler.events
