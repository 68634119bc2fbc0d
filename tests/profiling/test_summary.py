"""Where all of the time went: nothing twice, nothing left out."""

from __future__ import annotations

import json
import threading
import time

import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

import armpy
from armpy.backend import (
    IBackendInternal,
)
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import graphs_of
from armpy.model import Model
from armpy.profiling import (
    EventKind,
    Profiler,
    ProfilingEvent,
    Share,
    Summary,
    WatchedLock,
)
from armpy.profiling.summary import AROUND, BETWEEN, summarize
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    registry_of,
    runtime_of,
)
from armpy_testing.models.networks import diamond, floats
from armpy_testing.shared import shared_file


def event(
    kind: EventKind,
    name: str,
    start_us: float,
    end_us: float,
    *,
    backend: str = "",
    operation: str = "",
    layer: str = "",
    graph: str = "",
    thread: int = 1,
) -> ProfilingEvent:
    return ProfilingEvent(
        name,
        backend,
        start_us,
        end_us - start_us,
        thread,
        kind=kind,
        operation=operation,
        layer=layer,
        graph=graph,
    )


def execute(start_us: float, end_us: float, thread: int = 1) -> ProfilingEvent:
    return event(EventKind.EXECUTION, "Execute", start_us, end_us, thread=thread)


def layer(
    start_us: float, end_us: float, name: str, operation: str = "Reshape", **more: object
) -> ProfilingEvent:
    title = f"{operation} '{name}'"
    more = {"backend": "Npu", "operation": operation, "layer": name, **more}
    return event(EventKind.LAYER, title, start_us, end_us, **more)  # type: ignore[arg-type]  # by name


def command(start_us: float, end_us: float, name: str, **more: object) -> ProfilingEvent:
    more = {"backend": "Npu", **more}
    return event(EventKind.COMMAND, name, start_us, end_us, **more)  # type: ignore[arg-type]  # by name


def us(shares: tuple[Share, ...]) -> dict[str, float]:
    return {share.name: share.total_us for share in shares}


def summary_of(*events: ProfilingEvent) -> Summary:
    summary = summarize(events, ())
    check_sums(summary)
    return summary


def check_sums(summary: Summary) -> None:
    """The rule of all summaries, to the nanosecond."""
    rest_ns = sum(share.total_ns for share in (*summary.overhead, *summary.waiting))
    assert sum(share.total_ns for share in summary.layers) + rest_ns == summary.wall_ns
    assert sum(share.total_ns for share in summary.operations) + rest_ns == summary.wall_ns
    assert sum(share.total_ns for share in summary.load) == summary.load_ns
    assert all(share.total_ns >= 0 for share in (*summary.layers, *summary.overhead))
    parts = (*summary.layers, *summary.operations, *summary.overhead, *summary.waiting)
    assert all(sum(share.run_ns) == share.total_ns for share in parts)
    assert len(summary.run_ns) == summary.num_executions


def test_rows_are_plain_and_make_up_the_whole() -> None:
    first, second, around = summary_of(layer(2, 5, "a"), layer(5, 6, "b"), execute(1, 10)).to_rows()
    assert first == {
        "kind": "layer",
        "name": "Reshape 'a'",
        "layer": "a",
        "operation": "Reshape",
        "backend": "Npu",
        "count": 1,
        "total_us": 3.0,
        "share": pytest.approx(3 / 9),
        "low_us": 3.0,
        "median_us": 3.0,
        "high_us": 3.0,
    }
    assert (second["layer"], around["kind"], around["layer"]) == ("b", "overhead", "")
    assert around["share"] == pytest.approx(5 / 9)
    assert json.loads(json.dumps([first, second, around])) == [first, second, around]


def test_quartiles_are_of_single_executions_and_one_without_the_layer_counts_as_none() -> None:
    runs = [(10, 12, 20), (20, 24, 40), (40, 40, 100), (100, 110, 120)]
    events = [
        profile_event
        for start, end, last in runs
        for profile_event in ([layer(start, end, "a")] if end > start else [])
        + [execute(start, last)]
    ]
    summary = summary_of(*events)
    # By hand, as R's type 7: of 0, 2, 4, 10 and of 10, 20, 20, 60.
    assert summary.layers[0].quartiles_us(4) == (1.5, 3.0, 5.5)
    assert summary.run_us == (17.5, 20.0, 30.0)


def test_named_commands_take_the_place_of_the_layer_that_they_lie_in() -> None:
    first = command(2, 4, "Convolution2d 'c'", operation="Convolution2d", layer="c")
    pad = command(4, 5, "Convolution2d 'c': pad", operation="Convolution2d", layer="c")
    last = command(5, 6, "Softmax 's'", operation="Softmax", layer="s")
    summary = summary_of(first, pad, last, layer(1, 9, "all", "PreCompiled"), execute(0, 10))
    assert us(summary.layers) == {"Convolution2d 'c'": 3.0, "Softmax 's'": 1.0}
    assert us(summary.overhead) == {AROUND: 4.0, BETWEEN: 2.0}


def test_layers_within_control_flow_have_its_name_in_front_and_are_not_counted_twice() -> None:
    inner = [
        layer(2, 3, "less", "Comparison", graph="condition"),
        layer(3, 6, "sum", "ElementwiseBinary", graph="body"),
    ]
    summary = summary_of(*inner, layer(1, 8, "loop", "While"), execute(0, 9))
    assert us(summary.layers) == {
        "While 'loop'": 3.0,
        "ElementwiseBinary 'loop/body/sum'": 3.0,
        "Comparison 'loop/condition/less'": 1.0,
    }


def test_executions_side_by_side_add_up_and_elapse_once() -> None:
    summary = summary_of(execute(0, 10), execute(5, 15, thread=2), execute(20, 21))
    assert summary.num_executions == 3
    assert summary.wall_ns == 21000
    assert summary.elapsed_ns == 16000


def test_waits_are_named_by_what_was_waited_for() -> None:
    wait = event(EventKind.WAITING, "the variables", 1, 4)
    ahead = event(EventKind.QUEUED, "the queue", -5, 0)
    summary = summary_of(wait, layer(4, 6, "a"), execute(0, 7), ahead)
    assert us(summary.waiting) == {"the queue": 5.0, "the variables": 3.0}
    assert us(summary.overhead) == {BETWEEN: 2.0}
    assert summary.wall_ns == summary.elapsed_ns == 12000


def test_preparations_within_an_execution_are_its_overhead() -> None:
    phases = [
        event(EventKind.LOAD, "compile", 2, 6, backend="Npu"),
        event(EventKind.LOAD, "prepare", 1, 7),
        event(EventKind.LOAD, "load", -9, -5),
    ]
    summary = summarize([execute(0, 10)], phases)
    check_sums(summary)
    assert us(summary.overhead) == {"preparing: compile": 4.0, "preparing: prepare": 2.0} | {
        BETWEEN: 4.0
    }
    assert us(summary.load) == {"load": 4.0}


@pytest.mark.parametrize(
    "odd",
    [
        command(1, 8, "long"),  # beyond the end of its layer
        command(0.5, 3, "early"),  # from before its layer
        command(-3, 30, "around"),  # longer than the execution
        command(4, 4, "instant"),
        command(5, 5, "at the end"),
    ],
    ids=lambda e: e.name,
)
def test_times_that_a_backend_has_wrong_are_still_counted_once(odd: ProfilingEvent) -> None:
    other = command(2, 4.5, "right")
    summary = summary_of(odd, other, layer(1, 5, "a"), layer(5, 6, "b"), execute(0, 10))
    assert us(summary.layers)["Reshape 'b'"] == 1.0
    assert us(summary.layers)["Reshape 'a'"] == 4.0


class AnnouncedLock:
    """A lock that signals when a thread begins to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_waited_for = threading.Event()
        self.locked = self._lock.locked
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            self._is_waited_for.set()
        return self._lock.acquire(blocking, timeout)

    def release_when_waited_for(self) -> None:
        """Release it 20 ms after a thread began to wait, however long that took."""
        assert self._is_waited_for.wait(60)
        time.sleep(0.02)
        self.release()


def test_waiting_for_a_lock_is_measured_only_where_there_is_a_wait() -> None:
    profiler = Profiler()
    lock = AnnouncedLock()
    watched = WatchedLock(lock, "the lock")
    with armpy.profiling.profiled_by(profiler):
        with watched:
            assert lock.locked()
        assert not profiler.events
        lock.acquire(blocking=False)
        other = threading.Thread(target=lock.release_when_waited_for)
        other.start()
        with watched:
            pass
        other.join()
    (wait,) = profiler.events
    assert (wait.kind, wait.name) == (EventKind.WAITING, "the lock")
    assert wait.duration_us >= 10_000


def profiled(path: str, *backends: IBackendInternal) -> Summary:
    runtime = Runtime(RuntimeOptions(registry=registry_of(*backends), profiling=True))
    model = armpy.load(shared_file("models", *path.split("/")), runtime=runtime)
    # Batches may be open.
    arrays = {
        spec.name: spec.random(shape=[size or 1 for size in spec.shape or ()])
        for spec in model.inputs
    }
    started = time.perf_counter()
    for _ in range(3):
        model.run(arrays)
    taken_us = 1e6 * (time.perf_counter() - started)
    profiler = runtime.get_profiler(model.network_id)
    assert profiler is not None
    summary = profiler.summary()
    assert summary.num_executions == 3
    assert 0 < summary.wall_ns / 1000 <= taken_us
    check_sums(summary)
    if not any(graphs_of(layer.operation) for layer in model.graph.layers):
        names = {layer.name for layer in model.graph.layers}
        assert {name for s in summary.layers for name in s.layer.split(" + ")} <= names
    runtime.close()
    return summary


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backends", [(NumbaBackend, ReferenceBackend), (ReferenceBackend,)])
def test_a_loop_is_summed_by_the_layers_that_it_runs(
    backends: tuple[type[IBackendInternal], ...],
) -> None:
    summary = profiled("keras_more/text_gru_float32.tflite", *(b() for b in backends))
    bodies = [share for share in summary.layers if "/while/body/" in share.layer]
    assert {share.operation for share in bodies} >= {"FullyConnected", "ElementwiseBinary"}
    assert "While" in us(summary.operations)


def test_a_load_is_split_into_its_phases() -> None:
    runtime = runtime_of(FakeBackend("Npu"), profiling=True)
    network = runtime.load_network(diamond())
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    summary = profiler.summary()
    check_sums(summary)
    phases = {(share.name, share.backend) for share in summary.load}
    assert phases >= {
        ("load", ""),
        ("specialise", ""),
        ("optimise", ""),
        ("prepare", ""),
        ("assign layers", ""),
        ("bridge memories", ""),
        ("substitute", ""),
        ("compile", "Npu"),
        ("open session", "Npu"),
        ("plan memory", ""),
        ("prepare workload", "Npu"),
    }
    assert ("make working memory", "") not in phases  # the first execution takes it
    about = {e.layer for e in profiler.load_events if e.name == "prepare workload"}
    assert about == {layer.where for layer in runtime.get_network(network).graph.layers}
    assert (summary.num_executions, summary.wall_ns) == (0, 0)
    profiler.clear()
    assert profiler.summary().load_ns == summary.load_ns


def test_a_model_has_its_profile() -> None:
    properties = NetworkProperties(profiling=True)
    model = Model(diamond(), runtime_of(), properties=properties)
    model(floats(-1, 0, 2, 5))
    assert model.profiler is not None
    assert model.profiler.summary().num_executions == 1
    assert Model(diamond(), runtime_of()).profiler is None
