"""Queues of executions: order, priorities, fairness."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest

from armpy.backend import (
    Capabilities,
    Capability,
    ICompletion,
    IWorkload,
    current_priority,
)
from armpy.core.vlog import is_on
from armpy.errors import BackendError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.execution.scheduling.fair_queue import FairQueue
from armpy.execution.scheduling.stop_signal import CancellationToken
from armpy.execution.scheduling.tasks import ExecutionTask
from armpy.execution.scheduling.thread_pool import ThreadPool
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, NonZero
from armpy.ops.operation import Operation
from armpy.types import DeviceType, Priority
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step, runtime_of
from armpy_testing.models.networks import ADD, RELU, chain, f32, floats


class QueueBackend(FakeBackend):
    """Runs its commands when it is waited for, in order."""

    def __init__(
        self,
        *operations: type[Operation],
        stops: bool = True,
        device_type: DeviceType = DeviceType.ACCELERATOR,
    ) -> None:
        super().__init__("Queue", set(operations) or None, device_type=device_type)
        self.log: list[str] = []
        self.queue: list[Completion] = []
        self.stops = stops
        self.is_stuck = False
        self.is_broken = ""
        self.given: object = "right"

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: self.stops}

    def wrap(self, step: Step) -> IWorkload:
        return _Workload(self, step)


class _Workload(IWorkload):
    def __init__(self, backend: QueueBackend, step: Step) -> None:
        self._backend = backend
        self._step = step

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        raise NotImplementedError("the queue is used")

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        backend, name = self._backend, self._step.info.name
        backend.log.append(f"enqueue {name}")
        if backend.given != "right":
            return backend.given  # type: ignore[return-value]  # on purpose
        work = partial(self._step.right.execute, inputs, outputs)
        backend.queue.append(Completion(backend, name, work))
        return backend.queue[-1]


class Completion(ICompletion):
    """Done when it is waited for."""

    def __init__(self, backend: QueueBackend, name: str, work: Callable[[], None]) -> None:
        self._backend = backend
        self._name = name
        self.work = work
        self._is_cancelled = threading.Event()

    def wait(self, timeout_s: float | None = None) -> bool:
        backend = self._backend
        if backend.is_stuck and not self._is_cancelled.wait(timeout_s):
            return False
        backend.log.append(f"wait {self._name}")
        if backend.is_broken == self._name:
            raise RuntimeError("the device burns")
        while self in backend.queue:
            backend.queue.pop(0).work()
        return True

    def cancel(self) -> None:
        self._backend.log.append(f"cancel {self._name}")
        self._backend.queue.clear()
        self._is_cancelled.set()


def mixed() -> Graph:
    """``a -> b -> relu -> c -> y`` with additions of 1, and ``d`` beside, on vectors of 2."""
    net = Network()
    ones = net.constant(floats(1, 1))
    x = net.input("x", f32(2))
    b = net.add(ADD, net.add(ADD, x, ones, name="a"), ones, name="b")
    net.output("y", net.add(ADD, net.add(RELU, b, name="relu"), ones, name="c"))
    return net.build()


RUNS: dict[str, Callable[[Model], object]] = {
    "run": lambda model: model.run({"x": floats(1, -9)})["y"].tolist(),
    "bound": lambda model: model.bind({"x": floats(1, -9)})()["y"].tolist(),
    "start": lambda model: model.start({"x": floats(1, -9)}).result()["y"].tolist(),
    "deadline": lambda model: model.run({"x": floats(1, -9)}, deadline_s=10)["y"].tolist(),
}
WAYS = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@WAYS
def test_nothing_waits_before_another_backend_or_the_end_needs_the_tensors(
    run: Callable[[Model], object],
) -> None:
    backend = QueueBackend(ElementwiseBinary)
    model = Model(mixed(), runtime_of(backend))
    for _ in range(2):
        backend.log.clear()
        assert run(model) == [4, 1]
        assert backend.log == [
            "enqueue a",
            "enqueue b",
            "wait a",
            "wait b",
            "enqueue c",
            "wait c",
        ]


@WAYS
def test_a_queue_keeps_its_own_order(run: Callable[[Model], object]) -> None:
    backend = QueueBackend(ElementwiseBinary, Activation)
    model = Model(mixed(), runtime_of(backend))
    assert run(model) == [4, 1]
    assert backend.log[:4] == ["enqueue a", "enqueue b", "enqueue relu", "enqueue c"]


@WAYS
def test_what_goes_wrong_is_the_error_of_its_step(run: Callable[[Model], object]) -> None:
    backend = QueueBackend(ElementwiseBinary, Activation)
    model = Model(mixed(), runtime_of(backend))
    backend.is_broken = "b"
    with pytest.raises(BackendError, match=r"^Queue / ElementwiseBinary 'b'.*burns"):
        run(model)
    assert "cancel relu" in backend.log  # nothing is under way any more
    assert "cancel c" in backend.log
    backend.is_broken = ""
    assert run(model) == [4, 1]


@WAYS
def test_an_answer_that_is_no_completion_is_an_error(run: Callable[[Model], object]) -> None:
    backend = QueueBackend(ElementwiseBinary)
    model = Model(mixed(), runtime_of(backend))
    backend.given = 5
    with pytest.raises(BackendError, match=r"Queue / .*'a'.*enqueue.*Expected ICompletion or None"):
        run(model)


@pytest.mark.slow
@pytest.mark.parametrize("stops", [True, False])
def test_a_device_is_notified_when_an_execution_is_stopped(stops: bool) -> None:
    backend = QueueBackend(stops=stops)
    model = Model(chain(2, (2,)), runtime_of(backend))
    execution = model.bind({"x": floats(1, 2)})
    backend.is_stuck = True
    with pytest.raises(ExecutionTimeoutError, match="deadline"):
        model.run({"x": floats(1, 2)}, deadline_s=0.5)  # time to enqueue both on a busy machine
    future = execution.start()
    while backend.log.count("enqueue add_1") < 2:
        time.sleep(0.001)
    assert future.cancel()
    with pytest.raises(ExecutionCancelledError, match="cancelled"):
        future.result(timeout=10)
    deadline = time.monotonic() + 10
    while backend.log.count("cancel add_0") < 2 and time.monotonic() < deadline:
        time.sleep(0.001)  # abandoned commands are cancelled at its next check
    assert backend.log.count("cancel add_0") == 2
    backend.is_stuck = False
    assert execution()["y"].tolist() == [3, 4]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["profiled", "logged", "shaped by values"])
def test_a_device_is_notified_in_every_way_of_executing_its_layers(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "logged":
        monkeypatch.setattr(is_on, "cpuexe", True)
    # Layers of compiled code are logged.
    backend = QueueBackend(ElementwiseBinary, device_type=DeviceType.CPU_COMPILED)
    runtime = runtime_of(backend, profiling=how == "profiled")
    graph = chain(2, (2,))
    if how == "shaped by values":
        net = Network()
        added = net.add(ADD, net.input("x", f32(2)), net.constant(floats(1, 1)), name="add_0")
        net.output("y", net.add(NonZero(), added))
        graph = net.build()
    model = Model(graph, runtime)
    x = floats(1, 2)
    ways: list[Callable[[], object]] = [partial(model.run, {"x": x}), model.bind({"x": x})]
    for execute in ways:
        execute()
        assert backend.log.count("enqueue add_0") == backend.log.count("wait add_0")
    backend.is_stuck = True
    ways = [partial(model.run, {"x": x}, deadline_s=0.2), model.bind({"x": x}, deadline_s=0.2)]
    for execute in ways:
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            execute()
    until = time.monotonic() + 10
    while "cancel add_0" not in backend.log and time.monotonic() < until:
        time.sleep(0.001)  # abandoned commands are cancelled at its next check
    assert "cancel add_0" in backend.log


def test_a_profile_gives_each_layer_the_time_of_its_device() -> None:
    backend = QueueBackend()
    runtime = runtime_of(backend, profiling=True)
    model = Model(chain(2, (2,)), runtime)
    model.bind({"x": floats(1, 2)})()
    assert backend.log == ["enqueue add_0", "wait add_0", "enqueue add_1", "wait add_1"]


# Whose turn it is where executions wait for a thread


def task(owner: str, priority: Priority = Priority.MEDIUM) -> ExecutionTask[None]:
    return ExecutionTask(lambda _: None, CancellationToken(), priority, owner)


def order(queue: FairQueue, durations_s: dict[str, float] | None = None) -> list[str]:
    """Owners in the order in which they get the one thread, for as long as is said."""
    owners = []
    while (next_task := queue.take()) is not None:
        owner = str(next_task.owner)
        owners.append(owner)
        queue.add_time(next_task, (durations_s or {}).get(owner, 1.0))
    return owners


def test_higher_priorities_come_first_and_starve_no_other() -> None:
    queue = FairQueue()
    for _ in range(20):
        for priority in (Priority.LOW, Priority.MEDIUM, Priority.HIGH):
            queue.put(task(priority.name, priority))
    turns = order(queue)
    # Arm NN's order, with its expire rate of 3.
    above = ["HIGH", "HIGH", "HIGH", "MEDIUM"] * 3
    assert turns[:16] == [*above, "HIGH", "HIGH", "HIGH", "LOW"]


def test_abandoned_executions_are_passed_over() -> None:
    queue = FairQueue()
    dropped = task("dropped")
    queue.put(dropped)
    queue.put(task("wanted"))
    dropped.submitted().cancel()
    assert order(queue) == ["wanted"]


def begun_on(pool: ThreadPool) -> tuple[Future[object], threading.Event]:
    """A task that a pool's thread has begun, and the event that ends it."""
    begun, end = threading.Event(), threading.Event()

    def work(_: ExecutionTask[object]) -> object:
        begun.set()
        return end.wait(60)

    task = ExecutionTask(work, CancellationToken())
    future = task.submitted()
    pool.submit(task)
    assert begun.wait(60), "no thread is free"
    return future, end


def test_a_thread_is_counted_as_any_other_after_abandoned_work() -> None:
    pool = ThreadPool(1)
    for _ in range(2):  # the second time, the thread of the first time is the next one
        abandoned, late_end = begun_on(pool)
        assert abandoned.cancel()
        _, early_end = begun_on(pool)  # in the place of the abandoned one
        for num_idle, end in enumerate((early_end, late_end), 1):
            end.set()
            while len(pool._idle) < num_idle:
                time.sleep(0.0005)
    assert (pool._num_busy, pool._num_abandoned) == (0, 0)
    pool.close()


# The priority of an execution is passed to the backend that executes it


X = {"x": floats(-1, 0, 2, 5)}


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("how", ["start", "bound", "bound and started"])
def test_workloads_receive_the_priority(priority: Priority, how: str) -> None:
    priorities: list[Priority] = []
    backend = FakeBackend(before_execute=lambda: priorities.append(current_priority()))
    model = Model(chain(1), runtime_of(backend))
    if how == "start":
        model.start(X, priority=priority).result(30)
    elif how == "bound":
        model.bind(X, priority=priority, deadline_s=60)()
    else:
        model.bind(X).start(priority=priority).result(30)
    assert priorities == [priority]
    assert current_priority() is Priority.MEDIUM
    model(X["x"])
    assert priorities == [priority, Priority.MEDIUM]
