"""Executions that are spread over several backends, and layers assigned to backends."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from armpy import NetworkProperties
from armpy.backend import MemorySource
from armpy.errors import BackendCapabilityError, BackendError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Concat, ElementwiseBinary
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step, registry_of
from armpy_testing.models.networks import RELU, f32, placement_of

X = np.array([-1, 0, 3], np.float32)


def chain(length: int = 2) -> Graph:
    """``y = relu(...relu(x))``, layers ``relu_0`` and so on."""
    net = Network("chain")
    value = net.input("x", f32(None))
    for number in range(length):
        value = net.add(RELU, value, name=f"relu_{number}")
    net.output("y", value)
    return net.build()


def running(name: str, before: Callable[[], object] = lambda: None) -> FakeBackend:
    """A backend whose workloads call a function before they run."""
    return FakeBackend(name, before_execute=before)  # type: ignore[arg-type]  # results are dropped


def spread(*backends: FakeBackend, **options: object) -> Runtime:
    ids = [backend.get_id() for backend in backends]
    return Runtime(
        RuntimeOptions(
            backends=ids,
            registry=registry_of(*backends),
            spread="calls",
            **options,  # type: ignore[arg-type]  # checked at run time
        )
    )


def executions(model: Model) -> dict[str, int]:
    """How many executions each backend has answered."""
    network = model.handle.loaded
    assert network.spread is not None
    return {use.backend_id: use.executions for use in network.spread.backends}


class Gate:
    """Point that executions wait at until so many have come."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties, timeout=60)
        self.is_open = True

    def __call__(self) -> None:
        if not self.is_open:
            self.barrier.wait()


def test_executions_at_the_same_time_go_to_different_backends() -> None:
    gate = Gate(2)
    model = Model(chain(1), spread(running("A", gate), running("B", gate)))
    for _ in range(2):  # both are measured
        model(X)
    before = executions(model)
    assert before == {"A": 1, "B": 1}
    # Each waits for the other one: on one backend after the other they would wait for ever.
    gate.is_open = False
    with ThreadPoolExecutor(2) as pool:
        answers = [*pool.map(model, [X, 2 * X])]
    np.testing.assert_array_equal(answers[0], np.maximum(X, 0))
    np.testing.assert_array_equal(answers[1], 2 * np.maximum(X, 0))
    assert sum(executions(model).values()) == 4


def test_a_backend_that_fails_hands_its_executions_to_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = []

    def fail_third() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("the device is gone")

    model = Model(chain(1), spread(running("A", fail_third), running("B")))
    with caplog.at_level(logging.WARNING, "armpy.execution"):
        for number in range(200):
            np.testing.assert_array_equal(model(X + number), np.maximum(X + number, 0))
            model.handle.loaded.spread.backends[0].seconds.clear()  # type: ignore[union-attr]  # A is asked again
    assert caplog.text.count("A failed and gets no more executions") == 1
    assert "the device is gone" in caplog.text
    assert sum(executions(model).values()) == 200
    assert len(calls) == 3


def test_the_error_is_raised_where_every_backend_has_failed() -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    model = Model(chain(1), spread(running("A", fail), running("B", fail)))
    for _ in range(2):
        with pytest.raises(BackendError, match="broken"):
            model(X)


def test_no_execution_is_lost_or_mixed_while_a_backend_fails() -> None:
    count = iter(range(100_000))

    def fail_later() -> None:
        if next(count) > 40:
            raise RuntimeError("gone")

    model = Model(chain(2), spread(running("A", fail_later), running("B"), running("C")))
    inputs = [np.full(3, number, np.float32) for number in range(400)]
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(model, inputs)]
    for source, answer in zip(inputs, answers, strict=True):
        np.testing.assert_array_equal(answer, source)
    assert sum(executions(model).values()) == 400


def test_a_backend_that_cannot_prepare_gets_no_executions(caplog: pytest.LogCaptureFixture) -> None:
    broken = FakeBackend("Broken", faults={"create_workload": BackendError("no memory")})
    # Its layers go to the other one, so that the network is prepared all the same.
    model = Model(chain(1), spread(broken, running("B")))
    np.testing.assert_array_equal(model(X), [0, 0, 3])
    assert {layer.backend for layer in placement_of(model).layers} == {"B"}


def test_what_cannot_be_spread_is_refused() -> None:
    runtime = spread(running("A"), running("B"))
    properties = NetworkProperties(input_source=MemorySource.MALLOC)
    with pytest.raises(InvalidArgumentError, match=r"spread: .*imported inputs.*Leave spread out"):
        Model(chain(1), runtime, properties=properties)


def assigned(affinity: dict[str, str], *backends: FakeBackend) -> Model:
    chosen = backends or (running("A"), running("B"))
    ids = [backend.get_id() for backend in chosen]
    options = RuntimeOptions(backends=ids, registry=registry_of(*chosen), affinity=affinity)
    return Model(chain(3), Runtime(options))


@pytest.mark.parametrize(
    ("affinity", "backends"),
    [
        ({}, "AAA"),
        ({"relu_1": "B"}, "ABA"),
        ({"relu_*": "B"}, "BBB"),
        ({"relu_0": "A", "relu_*": "B"}, "ABB"),
        ({"relu_[12]": "B"}, "ABB"),
    ],
)
def test_layers_run_on_the_backend_that_they_are_assigned_to(
    affinity: dict[str, str], backends: str
) -> None:
    model = assigned(affinity)
    np.testing.assert_array_equal(model(X), np.maximum(X, 0))
    placement = placement_of(model)
    assert "".join(layer.backend for layer in placement.layers if layer.partition >= 0) == backends
    assert placement.fallbacks == 0


def test_a_layer_that_its_backend_refuses_is_an_error_with_the_reason() -> None:
    refusing = FakeBackend("A", operations=[ElementwiseBinary])
    with pytest.raises(BackendCapabilityError, match=r"relu_1.*: A: .*Activation.*assigns it to A"):
        assigned({"relu_1": "A"}, refusing, running("B"))(X)


class Rows(FakeBackend):
    """A backend that notes how many rows each execution of a layer has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.counts: list[int] = []
        self.is_gone = False

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        if self.is_gone:
            raise RuntimeError("the device is gone")
        self.counts.append(outputs[0].info.known_shape[0])
        super().execute(step, inputs, outputs)


def row_net(shape: tuple[int | None, ...] = (None, 3)) -> Graph:
    """``y = relu(x)`` and ``z``, which has each row of ``y`` twice."""
    net = Network("rows")
    y = net.add(RELU, net.input("x", f32(*shape)), name="relu")
    net.output("y", y)
    net.output("z", net.add(Concat(1), y, y, name="twice"))
    return net.build()


def row_model(*backends: FakeBackend) -> Model:
    ids = [backend.get_id() for backend in backends]
    options = RuntimeOptions(backends=ids, registry=registry_of(*backends), spread="rows")
    return Model(row_net(), Runtime(options))


def numbered(count: int) -> Array:
    return np.arange(3 * count, dtype=np.float32).reshape(count, 3) - count


def measured(model: Model, *seconds: float) -> None:
    """Pretend that the backends take so long for the rows of the latest call."""
    network = model.handle.loaded
    assert network.spread is not None
    for backend, time_s in zip(network.spread.backends, seconds, strict=True):
        backend.seconds = {tuple(network.latest_shapes()): time_s}
        backend.ended_s = math.inf  # not to be measured again


def test_rows_are_divided_by_speed_and_joined_in_order() -> None:
    fast, slow = Rows("Fast"), Rows("Slow")
    model = row_model(fast, slow)
    x = numbered(16)
    expected = np.maximum(x, 0)
    twice = np.tile(expected, 2)
    for _ in range(2):  # each is measured with all rows
        np.testing.assert_array_equal(model.run({"x": x})["z"], twice)
    assert (fast.counts, slow.counts) == ([16, 16], [16, 16])
    measured(model, 0.01, 0.03)
    for number in range(3):
        targets = {"y": np.full((16, 3), 9, np.float32)} if number else None
        results = model.run({"x": x}, targets)
        assert targets is None or results["y"] is targets["y"]
        np.testing.assert_array_equal(results["y"], expected)
        np.testing.assert_array_equal(results["z"], twice)
    assert (fast.counts[2:], slow.counts[2:]) == ([12] * 6, [4] * 6)
    # What takes less than threads do, or comes beside other calls, is one backend's.
    measured(model, 1e-4, 3e-4)
    model.run({"x": x})
    assert (fast.counts[-1], len(slow.counts)) == (16, 8)
    measured(model, 0.01, 0.03)
    model.handle.loaded.spread.backends[1].num_running += 1  # type: ignore[union-attr]
    model.run({"x": x})
    assert (fast.counts[-1], len(slow.counts)) == (16, 8)


def test_rows_of_a_backend_that_fails_are_computed_by_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backends = Rows("A"), Rows("B"), Rows("C")
    model = row_model(*backends)
    x = numbered(24)
    expected = np.maximum(x, 0)
    model.run({"x": x})
    measured(model, 0.024, 0.024, 0.024)
    np.testing.assert_array_equal(model.run({"x": x})["y"], expected)
    assert [backend.counts[-1] for backend in backends] == [8, 8, 8]
    for gone in backends[:2]:
        gone.is_gone = True
        for _ in range(3):
            np.testing.assert_array_equal(model.run({"x": x})["z"], np.tile(expected, 2))
        assert f"{gone.get_id()} failed and gets no more executions" in caplog.text
    assert backends[2].counts[-1] == 24
    assert 8 < backends[1].counts[-1] < 24  # with C, before it failed itself
    backends[2].is_gone = True
    with pytest.raises(BackendError, match="the device is gone"):
        model.run({"x": x})


def test_a_model_whose_rows_cannot_be_divided_is_refused() -> None:
    backends = running("A"), running("B")
    options = RuntimeOptions(backends=["A", "B"], registry=registry_of(*backends), spread="rows")
    reason = r"spread: .*no open first dimension of x, y, z to divide. Leave spread out"
    with pytest.raises(InvalidArgumentError, match=reason):
        Model(row_net((4, 3)), Runtime(options))
    with pytest.raises(InvalidArgumentError, match=r"spread: .*None, 'calls' or 'rows'; got True"):
        RuntimeOptions(spread=True)  # type: ignore[arg-type]
