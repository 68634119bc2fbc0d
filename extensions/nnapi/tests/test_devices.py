"""Devices: armpy's backends, and the operations that they declare."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from armpy.backend import IBackendContext
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.ops import ElementwiseBinary
from armpy.types import DeviceType
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    DeviceTypeCode,
    FeatureLevel,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_testing.backends.fake_backends import FakeBackend

from .nnapi_models import (
    BOOL_1,
    FLOAT_2,
    MODEL,
    add_activation,
    add_operands,
    devices_of,
    fails,
    sum_model,
)


@pytest.fixture
def manager() -> Iterator[DeviceManager]:
    """A device that adds and one that takes nothing, and the reference."""
    with devices_of(
        FakeBackend("Adder", {ElementwiseBinary}, device_type=DeviceType.ACCELERATOR),
        FakeBackend("Nothing", set(), device_type=DeviceType.GPU),
    ) as device_manager:
        yield device_manager


def add_and_floor(manager: DeviceManager, *, tensor: OperandType = FLOAT_2) -> Model:
    """FLOOR, added after the ADD that reads its output."""
    model = Model(manager)
    a, b, rounded, total = add_operands(model, tensor, tensor, tensor, tensor)
    model.add_operation(OperationCode.ADD, [rounded, b, add_activation(model)], [total])
    model.add_operation(OperationCode.FLOOR, [a], [rounded])
    model.identify_inputs_and_outputs([a, b], [total])
    model.finish()
    return model


def test_the_reference_device_comes_last_whatever_is_preferred() -> None:
    with devices_of(FakeBackend("Second", None), backends=["CpuRef", "Second"]) as manager:
        assert [device.name for device in manager.devices] == ["Second", "nnapi-reference"]


def test_a_device_says_what_it_is(manager: DeviceManager) -> None:
    adder, nothing, reference = manager.devices
    assert manager.device_count == 3
    assert (adder.name, adder.type, adder.version) == (
        "Adder",
        DeviceTypeCode.ACCELERATOR,
        "UNKNOWN",
    )
    assert (nothing.type, reference.type) == (DeviceTypeCode.GPU, DeviceTypeCode.CPU)
    assert reference.feature_level == FeatureLevel.LEVEL_4
    assert adder.supported_extensions == ()
    assert not adder.get_extension_support("com.example.other")
    adder.wait()


def test_a_device_that_does_not_answer_fails_to_become_ready() -> None:
    broken = FakeBackend("Broken", None, faults={"get_layer_support": RuntimeError("gone")})
    with devices_of(broken) as manager, fails(ResultCode.OP_FAILED, "Broken.*gone"):
        manager.devices[0].wait()


@pytest.mark.parametrize("index", [-1, 3])
def test_a_device_of_no_index_is_rejected(manager: DeviceManager, index: int) -> None:
    assert manager.get_device(2).name == "nnapi-reference"
    with fails(
        ResultCode.BAD_DATA, "the device's index is out of range. Expected an index below 3"
    ):
        manager.get_device(index)


def test_a_device_is_found_by_its_backend(manager: DeviceManager) -> None:
    assert manager.get_device_of_backend("CpuRef").name == "nnapi-reference"
    with pytest.raises(BackendUnavailableError, match="there is no backend 'Other'"):
        manager.get_device_of_backend("Other")


def test_supported_operations_are_in_the_order_they_were_added(manager: DeviceManager) -> None:
    model = add_and_floor(manager)
    assert model.operation_order == (1, 0)
    adder, nothing, reference = manager.devices
    assert adder.get_supported_operations(model) == [True, False]
    assert nothing.get_supported_operations(model) == [False, False]
    assert reference.get_supported_operations(model) == [True, True]


def test_an_oem_operation_needs_a_backend_that_opts_in(manager: DeviceManager) -> None:
    model = Model(manager)
    a, b, blob = add_operands(model, FLOAT_2, FLOAT_2, OperandType(OperandCode.OEM_SCALAR))
    model.set_operand_value(blob, b"of any length")
    model.add_operation(OperationCode.OEM_OPERATION, [a, blob], [b])
    model.identify_inputs_and_outputs([a], [b])
    model.finish()
    answer = manager.get_supported_operations_for_devices(model, manager.devices)
    assert answer == [False]
    with fails(ResultCode.BAD_DATA, "no backend has the vendor extension 'android.oem'"):
        Compilation(model).finish()


@pytest.mark.parametrize(("has_other", "is_supported"), [(False, True), (True, False)])
def test_control_flow_is_supported_with_everything_in_its_models(
    manager: DeviceManager, has_other: bool, is_supported: bool
) -> None:
    inner = sum_model(manager=manager)
    other = add_and_floor(manager) if has_other else inner
    model = Model(manager)
    condition, a, b, out, *models = add_operands(
        model, BOOL_1, FLOAT_2, FLOAT_2, FLOAT_2, MODEL, MODEL
    )
    for index, referenced in zip(models, (inner, other), strict=True):
        model.set_operand_value_from_model(index, referenced)
    model.add_operation(OperationCode.IF, [condition, *models, a, b], [out])
    model.identify_inputs_and_outputs([condition, a, b], [out])
    model.finish()
    assert manager.devices[0].get_supported_operations(model) == [is_supported]
    assert manager.devices[2].get_supported_operations(model) == [True]


def test_an_operation_that_cannot_be_lowered_is_supported_by_no_accelerator(
    manager: DeviceManager,
) -> None:
    model = sum_model(FLOAT_2, OperandType(OperandCode.TENSOR_FLOAT32, (3,)), manager=manager)
    assert manager.devices[0].get_supported_operations(model) == [False]


Ask = Callable[[DeviceManager, Model], object]


@pytest.mark.parametrize(
    ("ask", "code", "problem"),
    [
        (
            lambda m, model: m.get_supported_operations_for_devices(None, m.devices),
            ResultCode.UNEXPECTED_NULL,
            "the model or list of devices is None",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(model, None),
            ResultCode.UNEXPECTED_NULL,
            "the model or list of devices is None",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(Model(), []),
            ResultCode.BAD_DATA,
            "no device is given",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(Model(), [None]),
            ResultCode.BAD_STATE,
            "the model is not finished",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(model, [m.devices[0], None]),
            ResultCode.UNEXPECTED_NULL,
            "device 1 is None",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(model, m.devices[:1] * 2),
            ResultCode.BAD_DATA,
            "a device is given twice.*Adder",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(model, devices_of().devices),
            ResultCode.BAD_DATA,
            "the devices are another manager's",
        ),
        (
            lambda m, model: m.get_supported_operations_for_devices(
                model, [*m.devices, *devices_of().devices]
            ),
            ResultCode.BAD_DATA,
            "the device is another manager's",
        ),
    ],
)
def test_the_question_is_checked(
    manager: DeviceManager, ask: Ask, code: ResultCode, problem: str
) -> None:
    with fails(code, problem):
        ask(manager, sum_model())


def test_a_models_manager_is_that_of_its_devices(manager: DeviceManager) -> None:
    other = devices_of()
    model = sum_model(manager=other)
    with fails(ResultCode.BAD_DATA, "the devices are of another manager than the model"):
        Compilation.create_for_devices(model, [manager.devices[0]])
    with fails(ResultCode.BAD_DATA, "the devices are of another manager than the model"):
        manager.get_supported_operations_for_devices(model, [manager.devices[0]])
    Compilation.create_for_devices(model, [other.devices[0]])
    # A model made without a manager can be compiled for all.
    Compilation.create_for_devices(sum_model(), [manager.devices[0]])


def test_a_closed_manager_runs_nothing() -> None:
    manager = devices_of()
    device = manager.devices[0]
    manager.close()
    with fails(ResultCode.BAD_STATE, "the manager is closed"):
        manager.runtime([device])


def test_the_first_error_of_closing_is_raised_when_all_is_closed() -> None:
    class Context(IBackendContext):
        def before_unload_network(self, network_id: int) -> None:
            raise RuntimeError("stuck")

    manager = devices_of(FakeBackend("Stuck", context=Context()))
    Compilation(sum_model(manager=manager)).finish()
    compilation = Compilation(sum_model(manager=manager))
    compilation.finish()
    with pytest.raises(BackendError, match="stuck"):
        manager.close()
    with fails(ResultCode.BAD_STATE, "the manager is closed"):
        manager.runtime()


@pytest.mark.slow
def test_a_manager_looks_for_nothing_until_it_is_asked() -> None:
    code = (
        "import sys, armpy, armpy_nnapi as n; n.DeviceManager(); "
        "assert 'armpy_reference' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("options", [{}, {"backends": ["CpuRef"]}, ["CpuRef"], "CpuRef", "", 0])
def test_options_of_another_kind_are_refused(options: object) -> None:
    text = r"RuntimeOptions or None; got .*RuntimeOptions\(backends="
    with pytest.raises(InvalidArgumentError, match=rf"^DeviceManager.options: .*{text}"):
        DeviceManager(options)  # type: ignore[arg-type]  # on purpose
