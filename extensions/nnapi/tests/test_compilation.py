"""Calls that compile a model."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy.execution import RuntimeOptions
from armpy.ops import ElementwiseBinary
from armpy.types import DeviceType
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
    PreferenceCode,
    ResultCode,
)
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_testing.backends.fake_backends import FakeBackend

from .nnapi_models import (
    FLOAT_2,
    FLOAT_ANY,
    add_activation,
    add_operands,
    compiled,
    devices_of,
    fails,
    floats,
    sum_model,
)

C = OperandCode


@pytest.fixture
def manager() -> Iterator[DeviceManager]:
    """A device that adds, one that does everything else, and the reference."""
    with devices_of(
        FakeBackend("Adder", {ElementwiseBinary}, device_type=DeviceType.ACCELERATOR),
        FakeBackend("Rest", None, device_type=DeviceType.GPU),
    ) as device_manager:
        yield device_manager


def test_the_cause_of_a_failure_is_kept() -> None:
    three = OperandType(C.TENSOR_FLOAT32, (3,))
    with pytest.raises(Exception, match="ADD_0") as caught:
        Compilation(sum_model(FLOAT_2, three, FLOAT_ANY)).finish()
    assert isinstance(caught.value.__cause__, LayerValidationError)


@pytest.mark.parametrize("preference", [-7, *PreferenceCode])
def test_preferences_up_to_the_last_one_are_taken(preference: int) -> None:
    Compilation(sum_model()).set_preference(preference)


def floor_of_sum(manager: DeviceManager, tensor: OperandType = FLOAT_2) -> Model:
    """ADD, then FLOOR."""
    model = Model(manager)
    a, b, total, rounded = add_operands(model, *[tensor] * 4)
    model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
    model.add_operation(OperationCode.FLOOR, [total], [rounded])
    model.identify_inputs_and_outputs([a, b], [rounded])
    model.finish()
    return model


def test_chosen_devices_do_not_fall_back_to_the_reference(manager: DeviceManager) -> None:
    model = floor_of_sum(manager, FLOAT_ANY)
    compilation = Compilation.create_for_devices(model, manager.devices[:1])
    with fails(ResultCode.BAD_DATA, r"\(FLOOR\): none of the chosen devices \(Adder\)"):
        compilation.finish()


def test_a_model_that_no_device_takes_is_bad_data() -> None:
    with devices_of(FakeBackend("Adder", {ElementwiseBinary}), backends=["Adder"]) as manager:
        compilation = Compilation(floor_of_sum(manager))
        with fails(ResultCode.BAD_DATA, "no allowed backend supports this layer"):
            compilation.finish()


def test_an_unusable_backend_is_an_unavailable_device() -> None:
    manager = DeviceManager(RuntimeOptions(backends=["NoSuchBackend"]))
    with fails(ResultCode.UNAVAILABLE_DEVICE, "there is no backend 'NoSuchBackend'"):
        Compilation(sum_model(manager=manager)).finish()


def test_a_model_that_needs_too_much_memory_is_refused() -> None:
    manager = DeviceManager(RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=4))
    with fails(ResultCode.OUT_OF_MEMORY, "needs too much memory"):
        Compilation(sum_model(manager=manager)).finish()


def svdf(bias: Lifetime, bias_size: int = 2) -> Model:
    """SVDF of rank 1, whose bias is optional."""
    f32 = C.TENSOR_FLOAT32
    zeros = np.zeros(2, np.float32).tobytes()
    operands = (
        Operand(f32, (1, 1), lifetime=Lifetime.SUBGRAPH_INPUT),
        Operand(f32, (2, 1), lifetime=Lifetime.CONSTANT_COPY, data=floats(1, 2).tobytes()),
        Operand(f32, (2, 1), lifetime=Lifetime.CONSTANT_COPY, data=floats(1, 1).tobytes()),
        Operand(f32, (bias_size,), lifetime=bias),
        Operand(f32, (1, 2), lifetime=Lifetime.CONSTANT_COPY, data=zeros),
        Operand(C.INT32, lifetime=Lifetime.CONSTANT_COPY, data=np.int32(1).tobytes()),
        Operand(C.INT32, lifetime=Lifetime.CONSTANT_COPY, data=np.int32(0).tobytes()),
        Operand(f32, (1, 2), lifetime=Lifetime.SUBGRAPH_OUTPUT),
        Operand(f32, (1, 2), lifetime=Lifetime.SUBGRAPH_OUTPUT),
    )
    node = OperationNode(OperationCode.SVDF, tuple(range(7)), (7, 8))
    inputs = (0, 3) if bias is Lifetime.SUBGRAPH_INPUT else (0,)
    graph = Subgraph(operands, (node,), inputs, (7, 8))
    return Model.from_description(ModelDescription(graph), devices_of())


def test_a_model_that_only_runs_without_an_optional_input_is_compiled() -> None:
    compilation = compiled(svdf(Lifetime.SUBGRAPH_INPUT, bias_size=5))
    x = floats(3).reshape(1, 1)
    assert compilation(x, None)[1].tolist() == [[3, 6]]
    with fails(ResultCode.OP_FAILED, "SVDF"):
        compilation(x, floats(1, 2, 3, 4, 5))


def test_an_input_that_is_needed_cannot_be_left_out() -> None:
    compilation = compiled(sum_model())
    with fails(ResultCode.OP_FAILED, "ADD.*input1 has no value"):
        compilation(floats(1, 2), None)


def test_a_call_takes_as_many_arrays_as_the_model() -> None:
    with fails(ResultCode.BAD_DATA, "the number of inputs is not the model's. Expected 2; got 1"):
        compiled(sum_model())(floats(1, 2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_compilation_frees_its_networks(is_closed: bool) -> None:
    with devices_of() as manager:
        compilation = compiled(sum_model(manager=manager))
        network = weakref.ref(compilation.network(()))
        if is_closed:
            compilation.close()
        del compilation
        gc.collect()
        assert network() is None


def test_arguments_of_another_kind_are_rejected(manager: DeviceManager) -> None:
    with fails(ResultCode.UNEXPECTED_NULL, "the model or list of devices is None"):
        Compilation.create_for_devices(sum_model(), None)  # type: ignore[arg-type]
    with fails(ResultCode.BAD_DATA, r"Expected Device; got 'CpuRef'. Take them from"):
        Compilation.create_for_devices(sum_model(), ["CpuRef"])  # type: ignore[list-item]
    with fails(ResultCode.BAD_DATA, "the preference is not an integer"):
        Compilation(sum_model()).set_preference("fast")  # type: ignore[arg-type]


def test_a_model_without_outputs_is_not_run() -> None:
    model = Model()
    a, b = add_operands(model, FLOAT_2, FLOAT_2)
    model.add_operation(OperationCode.FLOOR, [a], [b])
    model.identify_inputs_and_outputs([a], [])
    model.finish()
    with fails(ResultCode.OP_FAILED, "the model has no outputs.*identify_inputs_and_outputs"):
        Compilation(model).finish()
