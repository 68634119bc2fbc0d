"""Vendor extensions as applications use them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    IBackendInternal,
)
from armpy.execution import RuntimeOptions
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_nnapi.extensions.allow_list import ENVIRONMENT_VARIABLE
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.vendor_extension import (
    NAME,
    REVERSE,
    TENSOR_RECORD,
    WIDE,
    RecordsBackend,
)

from .nnapi_models import bad_data, fails

UNKNOWN = "com.example.unknown"


def manager_of(*backends: IBackendInternal, **options: str) -> DeviceManager:
    """The devices of some backends, the reference last."""
    everything = [*backends, ReferenceBackend()]
    ids = [backend.get_id() for backend in everything]
    chosen = RuntimeOptions(backends=ids, registry=registry_of(*everything))
    return DeviceManager(chosen, **options)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> DeviceManager:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    return manager_of(RecordsBackend())


def add_operand(model: Model, type_id: int, *dimensions: int, name: str = NAME) -> int:
    """Add an operand of an extension's type."""
    code = model.get_extension_operand_type(name, type_id)
    return model.add_operand(OperandType(code, dimensions))


def add_operation(
    model: Model, number: int, inputs: Sequence[int], outputs: Sequence[int], name: str = NAME
) -> None:
    """Add an operation of an extension."""
    model.add_operation(model.get_extension_operation_type(name, number), inputs, outputs)


def reverse(manager: DeviceManager, *dimensions: int) -> Model:
    """A model with one REVERSE."""
    model = Model(manager)
    records = add_operand(model, TENSOR_RECORD, *dimensions)
    result = add_operand(model, TENSOR_RECORD, *dimensions)
    add_operation(model, REVERSE, [records], [result])
    model.identify_inputs_and_outputs([records], [result])
    model.finish()
    return model


def finished(model: Model, manager: DeviceManager) -> Compilation:
    compilation = Compilation(model, manager)
    compilation.finish()
    return compilation


def test_a_device_says_which_extensions_it_has(manager: DeviceManager) -> None:
    vendor, reference = manager.devices
    assert vendor.get_extension_support(NAME)
    assert not vendor.get_extension_support(UNKNOWN)
    assert not reference.get_extension_support(NAME)
    with fails(ResultCode.UNEXPECTED_NULL, "the extension's name is None"):
        vendor.get_extension_support(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [0xDEADBEEF, -1])
def test_a_code_that_no_extension_was_given_is_no_operation(
    code: int, manager: DeviceManager
) -> None:
    model = Model(manager)
    operands = [add_operand(model, TENSOR_RECORD, 2) for _ in range(2)]
    with bad_data("the code belongs to no extension|unknown operation"):
        model.add_operation(code, operands[:1], operands[1:])


def test_data_can_be_attached_to_operands_of_extensions_types_only(manager: DeviceManager) -> None:
    model = Model(manager)
    plain = model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (2,)))
    records = add_operand(model, TENSOR_RECORD, 2)
    model.set_operand_extension_data(records, b"any\0bytes")
    with bad_data("the operand is not of an extension's type. Got TENSOR_FLOAT32"):
        model.set_operand_extension_data(plain, b"any bytes")
    with bad_data("the data has no bytes"):
        model.set_operand_extension_data(records, b"")
    with bad_data("the operand's index is out of range. Expected an index below 2; got 2"):
        model.set_operand_extension_data(2, b"any bytes")


def test_attached_data_are_part_of_the_model_unless_cleared(manager: DeviceManager) -> None:
    for last, expected in ((b"last", b"last"), (None, None)):
        model = Model(manager)
        records = add_operand(model, TENSOR_RECORD, 2)
        result = add_operand(model, TENSOR_RECORD, 2)
        model.set_operand_extension_data(records, b"first")
        model.set_operand_extension_data(records, last)
        add_operation(model, REVERSE, [records], [result])
        model.identify_inputs_and_outputs([records], [result])
        model.finish()
        assert model.description.main.operands[records].extension_data == expected
        with fails(ResultCode.BAD_STATE, "the model is finished"):
            model.set_operand_extension_data(records, b"late")


@pytest.mark.parametrize("length", [5, 7])
def test_bytes_must_be_as_many_as_the_elements_have(length: int, manager: DeviceManager) -> None:
    execution = Execution(finished(reverse(manager, 2), manager))
    with bad_data(rf"Expected 6 bytes for extension type 0x10001.*; got {length} bytes"):
        execution.set_input(0, bytes(length))


def test_there_is_no_fallback_for_an_extension_s_operation(manager: DeviceManager) -> None:
    vendor, reference = manager.devices
    model = reverse(manager, 2)
    compilation = Compilation.create_for_devices(model, [reference])
    with bad_data(rf"nnapi-reference.*no backend has the vendor extension '{NAME}'.*of CpuRef"):
        compilation.finish()
    chosen = Compilation.create_for_devices(model, [vendor])
    chosen.finish()
    (result,) = chosen(np.arange(6, dtype=np.uint8).reshape(2, 3))
    np.testing.assert_array_equal(result[0], [3, 4, 5])


def test_an_application_that_is_not_on_the_list_cannot_use_extensions(tmp_path: Path) -> None:
    path = tmp_path / "allowed"
    path.write_text("com.foo.bar\n")
    options = {"application": "com.bar.foo", "extensions_allow_list": str(path)}
    model = Model(manager_of(RecordsBackend(), **options))
    expected = rf"may not use vendor extensions.*'com.bar.foo' in '{path}'\. Add a line"
    with bad_data(expected):
        add_operand(model, WIDE)
    operands = [model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (2,))) for _ in range(2)]
    with bad_data(expected):
        add_operation(model, REVERSE, operands[:1], operands[1:])


def test_a_device_has_no_extensions_for_an_application_that_is_not_on_the_list(
    tmp_path: Path,
) -> None:
    path = tmp_path / "allowed"
    path.write_text("com.foo.bar\n")
    for name, is_allowed in (("com.foo.bar", True), ("com.bar.foo", False)):
        manager = manager_of(RecordsBackend(), application=name, extensions_allow_list=str(path))
        assert manager.devices[0].get_extension_support(NAME) is is_allowed
        assert manager.devices[0].supported_extensions == (NAME,)


def test_without_extensions_the_list_does_not_matter(tmp_path: Path) -> None:
    manager = manager_of(extensions_allow_list=str(tmp_path / "missing"))
    model = Model(manager)
    operand, result = (
        model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (2,))) for _ in range(2)
    )
    model.add_operation(OperationCode.FLOOR, [operand], [result])
    model.identify_inputs_and_outputs([operand], [result])
    model.finish()
    (floored,) = finished(model, manager)(np.array([1.5, -1.5], np.float32))
    np.testing.assert_array_equal(floored, [1, -2])
