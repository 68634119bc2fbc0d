"""Failing backends, and random networks on unlike backends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from armpy import DebugValue, NetworkProperties, ops
from armpy.backend import (
    IMemoryManager,
)
from armpy.errors import (
    BackendError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
    InvalidArgumentError,
)
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    Handles,
    Outputs,
    Step,
    runtime_of,
)
from armpy_testing.models.control_flow import below, counting
from armpy_testing.models.networks import (
    ADD,
    MUL,
    chain,
    f32,
    floats,
    ints,
)

NEXT = NetworkProperties(on_failure="next")
X = floats(-1, 0, 1, 2)


class Failing(FakeBackend):
    """Writes rubbish to its outputs and raises, from some execution of a layer on."""

    def __init__(
        self,
        backend_id: str = "Failing",
        operations: Sequence[type] | None = None,
        *,
        after: int = 0,
        error: Callable[[], BaseException] = lambda: RuntimeError("the device is gone"),
    ) -> None:
        super().__init__(backend_id, operations)
        self.after = after
        self.error = error
        self.executed = 0

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self.executed += 1
        if self.executed > self.after:
            for handle in outputs:
                handle.map().reshape(-1).view(np.uint8)[...] = 77
            raise self.error()
        step.right.execute(inputs, outputs)


def test_the_next_backend_executes_again_and_it_is_written_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Failing(operations=[ops.ElementwiseBinary], after=1)
    with runtime_of(backend) as runtime, caplog.at_level(logging.WARNING, "armpy.execution"):
        model = Model(chain(3), runtime, properties=NEXT)
        np.testing.assert_array_equal(model.run({"x": X})["y"], X + 3)
        assert backend.executed == 2
        placement = model.placement
        assert placement is not None
        assert {layer.backend for layer in placement.layers} == {"CpuRef"}
        assert {(r.backend, r.code) for r in placement.refusals} == {("Failing", "execution")}
        assert "execution failed: Failing / ElementwiseBinary 'add_1'" in placement.refusals[0].text
        # It is not asked again.
        np.testing.assert_array_equal(model.run({"x": X})["y"], X + 3)
        assert backend.executed == 2
    (record,) = caplog.records
    assert "the device is gone" in record.message
    assert "Failing has failed and loses its layers, which are executed again" in record.message


def test_outputs_that_overlap_inputs_begin_with_the_inputs_as_they_were() -> None:
    with runtime_of(Failing(after=1)) as runtime:
        model = Model(chain(3), runtime, properties=NEXT)
        array = X.copy()
        model.run({"x": array}, {"y": array})
        np.testing.assert_array_equal(array, X + 3)


def test_bound_executions_in_place_begin_with_the_inputs_as_they_were() -> None:
    with runtime_of(Failing(after=4)) as runtime:
        array = X.copy()
        execution = Model(chain(3), runtime, properties=NEXT).bind({"x": array}, {"y": array})
        for turn in (1, 2, 3):
            execution()
            np.testing.assert_array_equal(array, X + 3 * turn)


def test_variables_are_as_before_the_failure() -> None:
    net = Network()
    state = net.variable("state", f32(4))
    total = net.add(ADD, net.input("x", f32(4)), state)
    net.assign(state, total)
    net.output("y", net.add(MUL, total, net.constant(np.float32(1))))
    with runtime_of(Failing(after=3)) as runtime:
        model = Model(net, runtime, properties=NEXT)
        for turn in (1, 2, 3):
            np.testing.assert_array_equal(model.run({"x": X})["y"], X * turn)


def test_a_failure_within_a_loop_begins_the_whole_again() -> None:
    backend = Failing(after=4)
    loop = ops.While(below(6, f32(4)), counting(f32(4), body=lambda net, i, x: (doubled(net, x),)))
    net = Network()
    layer = net.add_layer(loop, [net.constant(ints(0)), net.input("x", f32(4))])
    net.output("y", layer.outputs[1])
    with runtime_of(backend) as runtime:
        model = Model(net, runtime, properties=NEXT)
        np.testing.assert_array_equal(model.run({"x": X})["y"], X * 64)
        assert backend.executed == 5


def doubled(net: Network, value):  # type: ignore[no-untyped-def]
    return net.add(ADD, value, value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (lambda: InvalidArgumentError("an index is too large"), InvalidArgumentError),
        (lambda: ExecutionCancelledError("cancelled"), ExecutionCancelledError),
        (lambda: ExecutionTimeoutError("too late"), ExecutionTimeoutError),
    ],
    ids=["mistake", "cancelled", "late"],
)
def test_callers_mistakes_and_wishes_are_no_failures(
    error: Callable[[], BaseException], kind: type[BaseException]
) -> None:
    backend = Failing(error=error)
    with runtime_of(backend) as runtime:
        model = Model(chain(2), runtime, properties=NEXT)
        with pytest.raises(kind):
            model.run({"x": X})
        assert backend.executed == 1
        assert {layer.backend for layer in model.placement.layers} == {"Failing"}  # type: ignore[union-attr]


def test_callbacks_receive_the_attempt_that_was_completed() -> None:
    values_seen: list[DebugValue] = []
    with runtime_of(Failing(after=1)) as runtime:
        model = Model(chain(2), runtime, properties=NEXT)
        model.run({"x": X}, debug=values_seen.append)
    assert [debug_value.layer for debug_value in values_seen] == ["add_0", "add_1"]


def test_executions_side_by_side_all_come_to_their_end() -> None:
    with runtime_of(Failing(after=20)) as runtime, ThreadPoolExecutor(4) as pool:
        model = Model(chain(5), runtime, properties=NEXT)

        def run(number: int) -> bool:
            got = model.run({"x": X * number})["y"]
            return bool(np.array_equal(got, X * number + 5))

        assert all(pool.map(run, range(40)))


class EmptyManager(IMemoryManager):
    """Has no memory when an execution wants it."""

    def acquire(self) -> None:
        raise RuntimeError("the pool is gone")

    def release(self) -> None: ...


def test_memory_that_a_backend_cannot_acquire_is_a_failure() -> None:
    with runtime_of(FakeBackend("Pool", memory_manager=EmptyManager())) as runtime:
        with pytest.raises(BackendError, match="the pool is gone"):
            Model(chain(2), runtime).run({"x": X})
        model = Model(chain(2), runtime, properties=NEXT)
        np.testing.assert_array_equal(model.run({"x": X})["y"], X + 2)
        assert {layer.backend for layer in model.placement.layers} == {"CpuRef"}  # type: ignore[union-attr]
