"""Workloads that execute on arrays: used where a network is one step of the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import IWorkload, IWorkloadFactory, NetworkResources, WorkloadInfo
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, runtime_of
from armpy_testing.models.networks import ADD, f32, floats

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


def test_a_deadline_needs_handles() -> None:
    backend = ArrayBackend()
    Model(sum_of("x", "y"), runtime_of(backend)).run({"x": X, "y": X}, deadline_s=60)
    assert backend.calls == ["handles"]
