"""Rules of Arm NN's backend developer guide that no other test holds."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    IBackendContext,
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    OptionValues,
    WorkloadInfo,
)
from armpy.network import Network
from armpy.ops.operation import Operation
from armpy.plugins import BackendRegistry
from armpy.plugins.directories import find_modules
from armpy.runtime import Model, Runtime, RuntimeOptions
from tests.support.networks import ADD, f32, floats


class Recorder(ReferenceBackend):
    """Writes down what it is asked to make and what is done with that."""

    backend_id = "Recorder"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.manager = RecordedManager(self.calls)
        self.given: list[IMemoryManager | None] = []
        self.made: list[tuple[Operation, WorkloadInfo]] = []
        self.contexts: list[weakref.ref[IBackendContext]] = []

    def create_memory_manager(self) -> IMemoryManager:
        self.calls.append("create_memory_manager")
        return self.manager

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        self.calls.append("create_workload_factory")
        self.given.append(memory_manager)
        return RecordedFactory(super().create_workload_factory(memory_manager), self)

    def create_backend_context(self, options: OptionValues) -> IBackendContext:
        self.calls.append("create_backend_context")
        context = RecordedContext(self.calls)
        self.contexts.append(weakref.ref(context))
        return context


class RecordedManager(IMemoryManager):
    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def acquire(self) -> None:
        self._calls.append("acquire")

    def release(self) -> None:
        self._calls.append("release")


class RecordedContext(IBackendContext):
    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def close(self) -> None:
        self._calls.append("close")


class RecordedFactory(IWorkloadFactory):
    def __init__(self, factory: IWorkloadFactory, backend: Recorder) -> None:
        self._factory = factory
        self._backend = backend

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        self._backend.calls.append("create_workload")
        self._backend.made.append((operation, info))
        return RecordedWorkload(self._factory.create_workload(operation, info), self._backend.calls)


class RecordedWorkload(IWorkload):
    def __init__(self, workload: IWorkload, calls: list[str]) -> None:
        self._workload = workload
        self._calls = calls

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        self._calls.append("execute")
        self._workload.execute(inputs, outputs)


@pytest.fixture
def backend() -> Recorder:
    return Recorder()


@pytest.fixture
def runtime(backend: Recorder) -> Runtime:
    registry = BackendRegistry()
    registry.register("Recorder", lambda: backend)
    return Runtime(RuntimeOptions(registry=registry))


def load(runtime: Runtime) -> Model:
    """One layer with a constant operand."""
    net = Network("sum")
    two = net.constant(floats(2, 2), name="two")
    net.output("y", net.add(ADD, net.input("x", f32(2)), two, name="sum"))
    return Model(net, runtime)


def test_the_memory_manager_is_made_first_and_reaches_the_workload_factory(
    runtime: Runtime, backend: Recorder
) -> None:
    backend.calls.clear()
    load(runtime)
    assert backend.calls == ["create_memory_manager", "create_workload_factory", "create_workload"]
    assert backend.given == [backend.manager]


def test_memory_is_acquired_before_an_execution_and_released_after_it(
    runtime: Runtime, backend: Recorder
) -> None:
    model = load(runtime)
    for _ in range(2):
        backend.calls.clear()
        np.testing.assert_array_equal(model(floats(1, 3)), floats(3, 5))
        assert backend.calls == ["acquire", "execute", "release"]


def test_a_workload_is_made_from_the_operation_and_the_infos_of_its_tensors(
    runtime: Runtime, backend: Recorder
) -> None:
    load(runtime)
    ((operation, info),) = backend.made
    assert operation == ADD
    assert info.name == "sum"
    assert [i.shape for i in info.inputs if i is not None] == [(2,), (2,)]
    assert [o.shape for o in info.outputs] == [(2,)]
    variable, constant = info.constants
    assert variable is None
    np.testing.assert_array_equal(constant, floats(2, 2))


def test_a_context_is_made_with_the_runtime_and_kept_as_long(
    runtime: Runtime, backend: Recorder
) -> None:
    assert backend.calls == ["create_backend_context"]
    (context,) = backend.contexts
    load(runtime).close()
    gc.collect()
    assert context() is not None
    assert "close" not in backend.calls
    runtime.close()
    assert backend.calls[-1] == "close"
    gc.collect()
    assert context() is None


VALID = [
    "Arm_GpuAcc_backend.so",
    "Arm_GpuAcc_backend.so.1",
    "Arm_GpuAcc_backend.so.1.2",
    "Arm_GpuAcc_backend.so.1.2.3",
    "Arm_GpuAcc_backend.so.10.1.27",
    "Arm123_GpuAcc_backend.so",
    "Arm_GpuAcc456_backend.so",
    "Arm_CpuAcc_backend.so",
]
NOT_VALID = [
    "Arm_GpuAcc_backend.so.10.1.33.",
    "Arm_GpuAcc_backend.so.3.4..5",
    "Arm_GpuAcc_backend.so.1,1.1",
    "Arm%Co_GpuAcc_backend.so",
    "Arm_Gpu.Acc_backend.so",
    "GpuAcc_backend.so",
    "_GpuAcc_backend.so",
    "Arm__backend.so",
    "Arm_GpuAcc.so",
    "__backend.so",
    "__.so",
    "Arm_GpuAcc_backend",  # as a file; a folder of this name is a package
    "Arm_GpuAcc_backend_v1.2.so",
]
LINKS = {
    "Arm_CpuAcc_backend.so.1": "Arm_CpuAcc_backend.so",
    "Arm_CpuAcc_backend.so.1.2": "Arm_CpuAcc_backend.so.1",
    "Arm_CpuAcc_backend.so.1.2.3": "Arm_CpuAcc_backend.so.1.2",
}


def test_the_guides_table_of_names(tmp_path: Path) -> None:
    a, b = tmp_path / "pathA", tmp_path / "pathB"
    a.mkdir()
    b.mkdir()
    for name in (*VALID, *NOT_VALID):
        (a / name).touch()
    for link, target in LINKS.items():
        os.symlink(target, a / link)
    os.symlink("nothing", a / "Arm_no_backend.so")
    (b / "Arm_GpuAcc_backend.so").touch()  # the id tells that it is the same backend
    found = find_modules([str(a), str(b)]).modules
    assert [Path(file.entry).relative_to(tmp_path).as_posix() for file in found] == [
        *sorted(f"pathA/{name}" for name in VALID),
        "pathB/Arm_GpuAcc_backend.so",
    ]
