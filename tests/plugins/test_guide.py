"""Rules of Arm NN's backend developer guide that no other test holds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    BackendOption,
    IBackendContext,
    ILayerSupport,
    IMemoryManager,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionValues,
    PreparationRequest,
    Support,
    WorkloadInfo,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Convolution2d
from armpy.ops.operation import OperandInfos, Operation
from armpy.plugins import BackendRegistry
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import Handles, Outputs, registry_of
from armpy_testing.models.networks import ADD, f32, floats


class Recorder(ReferenceBackend):
    """Writes down what it is asked to make and what is done with that."""

    def get_id(self) -> str:
        return "Recorder"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.manager = RecordedManager(self.calls)
        self.given: list[IMemoryManager | None] = []
        self.made: list[tuple[Operation, WorkloadInfo]] = []
        self.contexts: list[weakref.ref[IBackendContext]] = []

    def create_memory_manager(self) -> IMemoryManager:
        self.calls.append("create_memory_manager")
        return self.manager

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.calls.append("create_workload_factory")
        self.given.append(network.memory_manager)
        return RecordedFactory(super().create_workload_factory(network), self)

    def create_backend_context(self, options: OptionValues) -> IBackendContext:
        self.calls.append("create_backend_context")
        context = RecordedContext(self.calls)
        self.contexts.append(weakref.ref(context))
        return context


class WithOptions(Recorder):
    """Has an option, and keeps what its context is made with."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[OptionValues] = []

    @property
    def options(self) -> Sequence[BackendOption]:
        return [BackendOption("level", 1, "How much."), BackendOption("name", "", "Its name.")]

    def create_backend_context(self, options: OptionValues) -> IBackendContext:
        self.values.append(options)
        return super().create_backend_context(options)


class WithoutContext(Recorder):
    """Needs none."""

    def create_backend_context(self, options: OptionValues) -> None:  # type: ignore[override]  # a kind of it
        self.calls.append("create_backend_context")


class Asked(ILayerSupport):
    """Keeps what it is asked, and takes everything that the reference takes."""

    def __init__(self) -> None:
        self.questions: list[tuple[Operation, OperandInfos, Sequence[TensorInfo]]] = []

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        self.questions.append((operation, inputs, outputs))
        support = ReferenceBackend().get_layer_support(PreparationRequest())
        return support.is_layer_supported(operation, inputs, outputs)


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

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
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
    bound = model.bind({"x": floats(1, 3)})
    backend.calls.clear()
    bound()
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


@pytest.mark.slow
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


def test_a_context_is_made_with_the_backends_own_options_defaults_included() -> None:
    backend = WithOptions()
    backend_options = {"Recorder": {"level": 3}}
    Runtime(RuntimeOptions(registry=registry_of(backend), backend_options=backend_options)).close()
    assert backend.values == [{"level": 3, "name": ""}]


def test_a_backend_may_have_no_context() -> None:
    backend = WithoutContext()
    with Runtime(RuntimeOptions(registry=registry_of(backend))) as runtime:
        assert backend.calls == ["create_backend_context"]
        model = load(runtime)
        np.testing.assert_array_equal(model(floats(1, 3)), floats(3, 5))
        model.close()


def test_layer_support_is_given_the_operation_its_tensors_and_what_is_constant() -> None:
    asked = Asked()
    backend = Recorder()
    backend.get_layer_support = lambda request: asked  # type: ignore[method-assign]  # for this object
    of_channels = Quantization((0.5, 0.25), (0, 0), axis=0)
    image = TensorInfo((1, 4, 4, 1), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3))
    output_info = TensorInfo((1, 1, 4, 2), DataType.QASYMM_S8, Quantization.per_tensor(1.0))
    net = Network()
    weights = net.constant(
        np.ones((2, 3, 3, 1), np.int8), data_type=DataType.QSYMM_S8, quantization=of_channels
    )
    convolution = Convolution2d(stride=(2, 1), padding=((0, 0), (1, 1)))
    net.output("y", net.add(convolution, net.input("x", image), weights, output=output_info))
    with Runtime(RuntimeOptions(registry=registry_of(backend))) as runtime:
        Model(net, runtime)
    operation, inputs, outputs = asked.questions[0]
    assert operation == convolution
    assert inputs[0] == image
    assert inputs[1] is not None
    assert (inputs[1].shape, inputs[1].quantization) == ((2, 3, 3, 1), of_channels)
    assert inputs[1].is_constant
    assert [*outputs] == [output_info]
