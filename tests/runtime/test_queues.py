"""A device that has a queue is waited for when somebody needs its tensors, and not before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from armpy.backend import (
    Capabilities,
    Capability,
    ICompletion,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    WorkloadInfo,
)
from armpy.core.vlog import is_on
from armpy.errors import BackendError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, NonZero
from armpy.ops.operation import Operation
from armpy.types import DeviceType
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import ADD, RELU, chain, f32, floats


class QueueBackend(FakeBackend):
    """Does what it is told when it is waited for, in order."""

    def __init__(self, *operations: type[Operation], stops: bool = True) -> None:
        super().__init__("Queue", set(operations) or None)
        self.log: list[str] = []
        self.queue: list[Completion] = []
        self.stops = stops
        self.is_stuck = False
        self.is_broken = ""
        self.given: object = "right"

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: self.stops}

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(self, super().create_workload_factory(network))


class _Factory(IWorkloadFactory):
    def __init__(self, backend: QueueBackend, right: IWorkloadFactory) -> None:
        self._backend = backend
        self._right = right

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload(self._backend, self._right.create_workload(operation, info), info.name)


class _Workload(IWorkload):
    def __init__(self, backend: QueueBackend, right: IWorkload, name: str) -> None:
        self._backend = backend
        self._right = right
        self._name = name

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        raise NotImplementedError("the queue is used")

    def enqueue(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> ICompletion | None:
        self._backend.log.append(f"enqueue {self._name}")
        if self._backend.given != "right":
            return self._backend.given  # type: ignore[return-value]  # on purpose
        completion = Completion(
            self._backend, self._name, lambda: self._right.execute(inputs, outputs)
        )
        self._backend.queue.append(completion)
        return completion


class Completion(ICompletion):
    """Done when it is waited for."""

    def __init__(self, backend: QueueBackend, name: str, work: Callable[[], None]) -> None:
        self._backend = backend
        self._name = name
        self._work = work
        self._is_cancelled = threading.Event()

    def wait(self, timeout_s: float | None = None) -> bool:
        backend = self._backend
        if backend.is_stuck and not self._is_cancelled.wait(timeout_s):
            return False
        backend.log.append(f"wait {self._name}")
        if backend.is_broken == self._name:
            raise RuntimeError("the device burns")
        while self in backend.queue:
            backend.queue.pop(0)._work()
        return True

    def cancel(self) -> None:
        self._backend.log.append(f"cancel {self._name}")
        self._backend.queue.clear()
        self._is_cancelled.set()


def mixed() -> Graph:
    """``a -> b -> relu -> c -> y`` with additions of 1, and ``d`` beside, on vectors of 2."""
    net = Network()
    one = net.constant(floats(1, 1))
    x = net.input("x", f32(2))
    b = net.add(ADD, net.add(ADD, x, one, name="a"), one, name="b")
    net.output("y", net.add(ADD, net.add(RELU, b, name="relu"), one, name="c"))
    return net.build()


RUNS: dict[str, Callable[[Model], object]] = {
    "run": lambda model: model.run({"x": floats(1, -9)})["y"].tolist(),
    "bound": lambda model: model.bind({"x": floats(1, -9)})()["y"].tolist(),
    "start": lambda model: model.start({"x": floats(1, -9)}).result()["y"].tolist(),
    "deadline": lambda model: model.run({"x": floats(1, -9)}, deadline_s=10)["y"].tolist(),
}
WAYS = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@WAYS
def test_nobody_waits_before_another_backend_or_the_end_needs_the_tensors(
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


@pytest.mark.parametrize("stops", [True, False])
def test_a_device_is_told_when_an_execution_is_stopped(stops: bool) -> None:
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
        time.sleep(0.001)  # what was abandoned is told as soon as it looks
    assert backend.log.count("cancel add_0") == 2
    backend.is_stuck = False
    assert execution()["y"].tolist() == [3, 4]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["profiled", "logged", "shaped by values"])
def test_a_device_is_told_however_its_layers_are_executed(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "logged":
        monkeypatch.setattr(is_on, "cpuexe", True)
    backend = QueueBackend(ElementwiseBinary)
    backend._device_type = DeviceType.CPU_COMPILED  # whose layers are logged
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
    ways = [partial(model.run, {"x": x}, deadline_s=0.02), model.bind({"x": x}, deadline_s=0.02)]
    for execute in ways:
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            execute()
    assert "cancel add_0" in backend.log


def test_a_profile_gives_each_layer_the_time_of_its_device() -> None:
    backend = QueueBackend()
    runtime = runtime_of(backend, profiling=True)
    model = Model(chain(2, (2,)), runtime)
    model.bind({"x": floats(1, 2)})()
    assert backend.log == ["enqueue add_0", "wait add_0", "enqueue add_1", "wait add_1"]
