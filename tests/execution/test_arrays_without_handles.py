"""Workloads that execute on arrays: used where a network is one step of the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import IWorkload, IWorkloadFactory, NetworkResources, WorkloadInfo
from armpy.errors import BackendError
from armpy.execution import NetworkProperties
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, runtime_of
from armpy_testing.models.networks import ADD, chain, f32, floats

X = floats(-1, 0, 2, 5)


class ArrayWorkload(IWorkload):
    """Doubles or adds its inputs, and counts how it was asked to."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._calls.append("handles")
        arrays = [handle.map() for handle in (*inputs, *outputs) if handle is not None]
        np.add(arrays[0], arrays[-2], out=arrays[-1])

    def for_arrays(self) -> Callable[[Sequence[Array]], object]:
        return self._execute_arrays

    def _execute_arrays(self, arrays: Sequence[Array]) -> None:
        self._calls.append("arrays")
        if np.isnan(arrays[0]).any():
            raise ValueError("not a number")
        np.add(arrays[0], arrays[-2], out=arrays[-1])


class ArrayBackend(FakeBackend):
    """Makes these workloads."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        calls = self.calls

        class Factory(ReferenceWorkloadFactory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                return ArrayWorkload(calls)

        return Factory()


def sum_of(*names: str) -> Network:
    """The sum of two inputs of a network with the inputs x and y."""
    net = Network()
    tensors = {name: net.input(name, f32(4)) for name in ("x", "y")}
    net.output("sum", net.add(ADD, *(tensors[name] for name in names)))
    return net


def test_the_only_step_gets_the_callers_arrays() -> None:
    backend = ArrayBackend()
    model = Model(sum_of("x", "y"), runtime_of(backend))
    out = np.empty(4, np.float32)
    np.testing.assert_array_equal(model(X, X + 1), 2 * X + 1)
    np.testing.assert_array_equal(model.run({"x": X, "y": X}, {"sum": out})["sum"], 2 * X)
    np.testing.assert_array_equal(out, 2 * X)
    assert backend.calls == ["arrays", "arrays"]
    model.bind({"x": X, "y": X})()  # with arrays of handles that stay
    assert backend.calls[2:] == ["handles"]


def test_operands_in_another_order_need_handles() -> None:
    backend = ArrayBackend()
    model = Model(sum_of("y", "x"), runtime_of(backend))
    np.testing.assert_array_equal(model(X, X + 1), 2 * X + 1)
    assert backend.calls == ["handles"]


def test_an_input_that_is_not_read_needs_handles() -> None:
    backend = ArrayBackend()
    model = Model(sum_of("y", "y"), runtime_of(backend))
    np.testing.assert_array_equal(model(X, X + 1), 2 * X + 2)
    assert backend.calls == ["handles"]


def test_several_steps_need_handles() -> None:
    backend = ArrayBackend()
    Model(chain(2), runtime_of(backend))(X)
    assert backend.calls == ["handles", "handles"]


def test_a_deadline_needs_handles() -> None:
    backend = ArrayBackend()
    Model(sum_of("x", "y"), runtime_of(backend)).run({"x": X, "y": X}, deadline_s=60)
    assert backend.calls == ["handles"]


def test_a_profile_has_the_step_that_could_run_on_arrays() -> None:
    backend = ArrayBackend()
    properties = NetworkProperties(profiling=True)
    model = Model(sum_of("x", "y"), runtime_of(backend), properties=properties)
    model(X, X)
    assert model.profiler is not None
    assert "Fake" in {event.backend for event in model.profiler.events}
    assert backend.calls == ["handles"]


def test_an_error_on_arrays_names_backend_and_layer() -> None:
    model = Model(sum_of("x", "y"), runtime_of(ArrayBackend()))
    with pytest.raises(BackendError, match=r"Fake / ElementwiseBinary.*not a number"):
        model(X * np.nan, X)
    np.testing.assert_array_equal(model(X, X), 2 * X)
