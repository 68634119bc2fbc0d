"""Operations whose output shapes only their workloads know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from armpy_reference.workload import ReferenceWorkload

from armpy.backend import (
    Capabilities,
    Capability,
    DynamicTensorHandle,
    HostTensorHandle,
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.errors import (
    BackendCapabilityError,
    BackendError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.execution import LoadedNetwork
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array, Operand, OperandInfos, Operation
from armpy.ops.operation import rule as type_rule
from armpy.tensor import Shape as TensorShape
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import FakeBackend, FunctionWorkload, runtime_of
from armpy_testing.models.networks import ADD, RELU, f32, floats, i32, placement_of


@dataclass(frozen=True, slots=True)
class Positives(Operation):
    """The positive elements of a vector, and where they are."""

    knows_rank: bool = True

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input"),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output"), Operand("indices"))
    type_rules = (type_rule([DataType.FLOAT32], [DataType.FLOAT32, DataType.SIGNED32]),)
    has_data_dependent_outputs: ClassVar[bool] = True

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        return ((None,), (None,)) if self.knows_rank else (None, None)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        return (DataType.FLOAT32, DataType.SIGNED32)


class PositivesWorkload(ReferenceWorkload[Positives]):
    """As CpuRef would do it."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (indices,) = np.nonzero(inputs[0] > 0)
        return inputs[0][indices], indices.astype(np.int32)


class PositivesBackend(FakeBackend):
    """Knows one operation."""

    def __init__(
        self,
        backend_id: str = "Positive",
        *,
        is_capable: bool = True,
        workload: IWorkload | None = None,
        manager: IMemoryManager | None = None,
    ) -> None:
        super().__init__(backend_id, memory_manager=manager)
        self._is_capable = is_capable
        self._workload = workload

    def get_capabilities(self) -> Capabilities:
        return {Capability.DYNAMIC_OUTPUT_SHAPES: True} if self._is_capable else {}

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        is_known = isinstance(operation, Positives)
        return Support.yes() if is_known else Support.no(ReasonCode.OPERATION, "not here")

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(self._workload)


class _Factory(IWorkloadFactory):
    def __init__(self, workload: IWorkload | None) -> None:
        self._workload = workload

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        assert isinstance(operation, Positives)
        return self._workload or PositivesWorkload(operation, info)


X = floats(-1, 2, -3, 4, 5)


def positives(*, knows_rank: bool = True, length: int | None = 5) -> Graph:
    """``positives(x + 0) + 1``, the indices, and ``relu(x)``."""
    net = Network()
    x = net.input("x", f32(length))
    same = net.add(ADD, x, net.constant(floats(0)), name="before")
    values, indices = net.add_layer(Positives(knows_rank), [same], name="positives").outputs
    net.output("moved", net.add(ADD, values, net.constant(floats(1)), name="after"))
    net.output("indices", indices)
    net.output("relu", net.add(RELU, x, name="aside"))
    return net.build()


def check(results: Array | tuple[Array, ...], x: Array) -> None:
    moved, indices, relu = results
    np.testing.assert_array_equal(moved, x[x > 0] + 1)
    np.testing.assert_array_equal(indices, np.nonzero(x > 0)[0])
    np.testing.assert_array_equal(relu, np.maximum(x, 0))


def test_dimensions_that_depend_on_values_are_unknown() -> None:
    model = Model(positives(), runtime_of(PositivesBackend()))
    network: LoadedNetwork = model.runtime.get_network(model.network_id)
    shapes = [info.shape for info in network.output_infos([(5,)])]
    assert shapes == [(None,), (None,), (5,)]


def test_a_constant_operand_is_handed_to_the_workload() -> None:
    net = Network()
    net.output("y", net.add_layer(Positives(), [net.constant(X)]).outputs[0])
    net.output("x", net.input("x", f32(1)))
    values, _ = Model(net, runtime_of(PositivesBackend()))(floats(0))
    np.testing.assert_array_equal(values, [2, 4, 5])


def test_only_capable_backends_are_asked() -> None:
    incapable = PositivesBackend("Old", is_capable=False)
    model = Model(positives(), runtime_of(incapable, PositivesBackend()))
    texts = [r.text for r in placement_of(model).refusals if r.layer == "positives"]
    assert texts == ["the outputs' shapes depend on values; it lacks DynamicOutputShapes"]
    check(model(X), X)
    with pytest.raises(BackendCapabilityError, match=r"'positives'.*Old: .*lacks Dynamic"):
        Model(positives(), runtime_of(incapable))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda outs: None, BackendError, "positives': the workload has left an output without"),
        (lambda outs: outs[0].map(), InvalidArgumentError, "no memory yet.*Call resize"),
        (lambda outs: outs[0].resize((2, 2)), LayerValidationError, r"Expected \(\?,\); got \(2"),
        (lambda outs: outs[0].resize((1000,)), MemoryLimitError, "at most 2000 bytes"),
        (lambda outs: outs[0].resize((1 << 70,)), MemoryLimitError, "larger than one execution"),
        (lambda outs: 1 / 0, BackendError, "Positive / Positives 'positives': .*ZeroDivision"),
    ],
)
def test_a_workload_without_a_usable_shape_is_an_error_with_its_name(
    function: Callable[[Sequence[ITensorHandle]], object], error: type[Exception], text: str
) -> None:
    backend = PositivesBackend(workload=FunctionWorkload(lambda _, outputs: function(outputs)))
    model = Model(positives(), runtime_of(backend, memory_limit_bytes=2000))
    with pytest.raises(error, match=text):
        model(X)


def test_a_handle_has_its_shape_once_it_is_set() -> None:
    handle = DynamicTensorHandle(TensorInfo((None, 2), DataType.FLOAT32))
    assert not handle.is_resized
    array = handle.resize((3, 2))
    assert array.shape == (3, 2)
    assert array.dtype == np.float32
    assert handle.info == f32(3, 2)
    assert handle.map() is array


def test_cpu_ref_checks_outputs_whose_shape_is_declared() -> None:
    info = WorkloadInfo("w", (f32(5),), (f32(3), i32(3)), (None,))
    workload = PositivesWorkload(Positives(), info)
    outputs = [
        HostTensorHandle(o, np.zeros(o.known_shape, o.data_type.dtype)) for o in info.outputs
    ]
    workload.execute([HostTensorHandle(f32(5), X)], outputs)
    np.testing.assert_array_equal(outputs[0].map(), [2, 4, 5])
    with pytest.raises(LayerValidationError, match=r"another shape.*Expected \(3,\); got \(2,\)"):
        workload.execute([HostTensorHandle(f32(5), -X)], outputs)


def test_a_variable_keeps_its_shape() -> None:
    net = Network()
    state = net.variable("state", f32(2))
    values = net.add_layer(Positives(), [net.input("x", f32(5))]).outputs[0]
    net.assign(state, values)
    net.output("y", net.add(ADD, state, net.constant(floats(0))))
    model = Model(net, runtime_of(PositivesBackend()))
    model(floats(1, 2, 0, 0, 0))
    with pytest.raises(InvalidArgumentError, match=r"variable 'state'.*Expected \(2,\); got \(3,"):
        model(X)
    np.testing.assert_array_equal(model(floats(1, 2, 0, 0, 0)), [1, 2])
