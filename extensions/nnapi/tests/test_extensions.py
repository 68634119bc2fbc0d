"""Vendor extensions as applications use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    Extension,
    ExtensionOperandType,
    ExtensionOperation,
    IBackendInternal,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    Support,
    WorkloadInfo,
)
from armpy.errors import NnapiError, ResultCode
from armpy.execution import RuntimeOptions
from armpy.ops import Operand
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import Shape, TensorInfo
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
)
from armpy_nnapi.extensions.allow_list import ENVIRONMENT_VARIABLE
from armpy_nnapi.validation.validate_model import validate_operation
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, registry_of
from armpy_testing.backends.vendor_extension import (
    COUNT,
    EXTENSION,
    NAME,
    REVERSE,
    TENSOR_RECORD,
    TENSOR_WIDE,
    WIDE,
    RecordsBackend,
)

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


@contextmanager
def fails(code: ResultCode, match: str) -> Iterator[None]:
    with pytest.raises(NnapiError, match=match) as caught:
        yield
    assert caught.value.code is code


def bad_data(match: str) -> AbstractContextManager[None]:
    return fails(ResultCode.BAD_DATA, match)


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


def test_a_type_that_no_device_has_fails_when_an_operand_is_added(manager: DeviceManager) -> None:
    model = Model(manager)
    code = model.get_extension_operand_type(UNKNOWN, 0)
    with bad_data(
        rf"no backend has the vendor extension '{UNKNOWN}'.*of Records, CpuRef\. Install"
    ):
        model.add_operand(OperandType(code))


def test_an_operation_that_no_device_has_fails_when_the_model_is_compiled(
    manager: DeviceManager,
) -> None:
    model = Model(manager)
    operands = [model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (2,))) for _ in range(2)]
    add_operation(model, 0, operands[:1], operands[1:], name=UNKNOWN)
    model.identify_inputs_and_outputs(operands[:1], operands[1:])
    model.finish()
    assert manager.get_supported_operations_for_devices(model, manager.devices) == [False]
    with bad_data(rf"no backend has the vendor extension '{UNKNOWN}'"):
        finished(model, manager)


@pytest.mark.parametrize("code", [0xDEADBEEF, -1])
def test_a_code_that_no_extension_was_given_is_no_operation(
    code: int, manager: DeviceManager
) -> None:
    model = Model(manager)
    operands = [add_operand(model, TENSOR_RECORD, 2) for _ in range(2)]
    with bad_data("the code belongs to no extension|unknown operation"):
        model.add_operation(code, operands[:1], operands[1:])


@pytest.mark.parametrize(
    ("scale", "zero_point", "reason"),
    [(0.5, 0, "the scale does not fit the type"), (0.0, 1, "the zero point does not fit")],
)
def test_extensions_types_have_neither_scale_nor_zero_point(
    scale: float, zero_point: int, reason: str, manager: DeviceManager
) -> None:
    model = Model(manager)
    code = model.get_extension_operand_type(NAME, TENSOR_RECORD)
    with bad_data(reason):
        model.add_operand(OperandType(code, (2,), scale, zero_point))


def test_a_scalar_of_an_extension_has_no_dimensions(manager: DeviceManager) -> None:
    with bad_data("a scalar has no dimensions"):
        add_operand(Model(manager), WIDE, 1)


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


def test_a_finished_model_names_the_extensions_that_it_uses(manager: DeviceManager) -> None:
    Model(manager).get_extension_operand_type(UNKNOWN, 0)  # prefix 1
    assert reverse(manager, 2).description.extensions == {2: NAME}


def test_an_extension_s_operation_needs_feature_level_29(manager: DeviceManager) -> None:
    graph = reverse(manager, 2).description.main
    assert validate_operation(graph.operations[0], graph.operands) == 29
    with bad_data("needs a higher feature level. Expected at most 28; got 29"):
        validate_operation(graph.operations[0], graph.operands, feature_level=28)


def test_a_model_runs_on_the_device_that_has_the_extension(manager: DeviceManager) -> None:
    compilation = finished(reverse(manager, 2), manager)
    (result,) = compilation(np.array([[1, 2, 3], [4, 5, 6]], np.uint8))
    np.testing.assert_array_equal(result, [[4, 5, 6], [1, 2, 3]])


def test_elements_are_given_and_taken_as_bytes(manager: DeviceManager) -> None:
    execution = Execution(finished(reverse(manager, 2), manager))
    out = bytearray(6)
    execution.set_input(0, b"abcdef")
    execution.set_output(0, out)
    execution.compute()
    assert out == b"defabc"
    assert execution.get_output_operand_dimensions(0) == (2,)
    assert execution.get_output_operand_rank(0) == 1


@pytest.mark.parametrize("length", [5, 7])
def test_bytes_must_be_as_many_as_the_elements_have(length: int, manager: DeviceManager) -> None:
    execution = Execution(finished(reverse(manager, 2), manager))
    with bad_data(rf"Expected 6 bytes for extension type 0x10001.*; got {length} bytes"):
        execution.set_input(0, bytes(length))


def test_dimensions_that_the_model_leaves_open_come_with_the_input(manager: DeviceManager) -> None:
    model = reverse(manager, 0)
    execution = Execution(finished(model, manager))
    code = model.description.main.operands[0].type
    out = bytearray(9)
    execution.set_input(0, b"abcdefghi", OperandType(code, (3,)))
    execution.set_output(0, out)
    execution.compute()
    assert out == b"ghidefabc"
    assert execution.get_output_operand_dimensions(0) == (3,)


def count(manager: DeviceManager, length: int) -> Model:
    """A model with one COUNT."""
    model = Model(manager)
    number = add_operand(model, WIDE)
    result = add_operand(model, TENSOR_WIDE, length)
    add_operation(model, COUNT, [number], [result])
    model.identify_inputs_and_outputs([number], [result])
    model.finish()
    return model


def test_a_scalar_may_decide_on_the_output_s_dimensions(manager: DeviceManager) -> None:
    compilation = finished(count(manager, 0), manager)
    for length in (3, 1):
        (result,) = compilation(np.array(length, np.int64))
        np.testing.assert_array_equal(result, np.arange(length))


def test_dimensions_other_than_the_model_s_fail_when_they_come_out(manager: DeviceManager) -> None:
    compilation = finished(count(manager, 3), manager)
    (result,) = compilation(np.array(3, np.int64))
    np.testing.assert_array_equal(result, [0, 1, 2])
    with fails(ResultCode.OP_FAILED, "output 0 has other dimensions"):
        compilation(np.array(4, np.int64))


def test_an_output_that_does_not_fit_says_what_it_needs(manager: DeviceManager) -> None:
    execution = Execution(finished(count(manager, 0), manager))
    out = bytearray(16)
    execution.set_input(0, np.array(3, np.int64))
    execution.set_output(0, out)
    with fails(ResultCode.OUTPUT_INSUFFICIENT_SIZE, "output 0"):
        execution.compute()
    assert out == bytes(16)
    with fails(ResultCode.OUTPUT_INSUFFICIENT_SIZE, "output"):
        execution.get_output_operand_dimensions(0)


def test_only_a_device_with_the_extension_supports_its_operations(manager: DeviceManager) -> None:
    vendor, reference = manager.devices
    model = reverse(manager, 2)
    assert vendor.get_supported_operations(model) == [True]
    assert reference.get_supported_operations(model) == [False]
    assert manager.get_supported_operations_for_devices(model, [reference, vendor]) == [True]


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


def test_operands_that_the_extension_refuses_are_bad_data_when_compiled(
    manager: DeviceManager,
) -> None:
    model = Model(manager)
    operands = [add_operand(model, TENSOR_RECORD, 2) for _ in range(2)]
    add_operation(model, COUNT, operands[:1], operands[1:])
    model.identify_inputs_and_outputs(operands[:1], operands[1:])
    model.finish()
    with bad_data(rf"{NAME} / COUNT: COUNT takes a number. Expected WIDE"):
        finished(model, manager)


def test_what_the_extension_refuses_when_it_runs_is_op_failed(manager: DeviceManager) -> None:
    compilation = finished(count(manager, 0), manager)
    with fails(ResultCode.OP_FAILED, "that is too many. Expected up to 100"):
        compilation(np.array(101, np.int64))


def test_extensions_go_into_the_models_of_control_flow(manager: DeviceManager) -> None:
    then, otherwise = reverse(manager, 2), Model(manager)
    records = add_operand(otherwise, TENSOR_RECORD, 2)
    same = add_operand(otherwise, TENSOR_RECORD, 2)
    zero = otherwise.add_operand(OperandType(OperandCode.TENSOR_INT32, (1,)))
    otherwise.set_operand_value(zero, np.array([0], np.int32))
    add_operation(otherwise, REVERSE, [records, zero], [same])
    otherwise.identify_inputs_and_outputs([records], [same])
    otherwise.finish()

    model = Model(manager)
    condition = model.add_operand(OperandType(OperandCode.TENSOR_BOOL8, (1,)))
    models = [model.add_operand(OperandType(OperandCode.MODEL)) for _ in range(2)]
    model.set_operand_value_from_model(models[0], then)
    model.set_operand_value_from_model(models[1], otherwise)
    operand = add_operand(model, TENSOR_RECORD, 2)
    result = add_operand(model, TENSOR_RECORD, 2)
    model.add_operation(OperationCode.IF, [condition, *models, operand], [result])
    model.identify_inputs_and_outputs([condition, operand], [result])
    model.finish()
    assert model.description.extensions == {1: NAME}
    assert manager.devices[0].get_supported_operations(model) == [True]
    (output,) = finished(model, manager)(
        np.array([True]), np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
    )
    np.testing.assert_array_equal(output, [[4, 5, 6], [1, 2, 3]])


def test_a_description_may_have_other_prefixes(manager: DeviceManager) -> None:
    description = reverse(manager, 2).description
    operands = tuple(replace(o, type=0x70000 | o.type & 0xFFFF) for o in description.main.operands)
    nodes = tuple(replace(n, type=0x70000 | n.type & 0xFFFF) for n in description.main.operations)
    main = replace(description.main, operands=operands, operations=nodes)
    model = Model.from_description(replace(description, main=main, extensions={7: NAME}), manager)
    (result,) = finished(model, manager)(np.array([[1, 2, 3], [4, 5, 6]], np.uint8))
    np.testing.assert_array_equal(result, [[4, 5, 6], [1, 2, 3]])


def other_types() -> Extension:
    """The extension with another operand type."""
    return Extension(NAME, (ExtensionOperandType(WIDE, "WIDE", False, 4),), EXTENSION.operations)


def test_an_extension_about_which_devices_disagree_cannot_be_used() -> None:
    manager = manager_of(RecordsBackend("One"), RecordsBackend("Two", [other_types()]))
    assert all(device.get_extension_support(NAME) for device in manager.devices[:2])
    model = Model(manager)
    with bad_data("disabled: One and Two declare other operand types for it"):
        add_operand(model, WIDE)
    operands = [model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (2,))) for _ in range(2)]
    add_operation(model, REVERSE, operands[:1], operands[1:])
    model.identify_inputs_and_outputs(operands[:1], operands[1:])
    model.finish()
    for device in manager.devices:
        assert device.get_supported_operations(model) == [False]
    with bad_data("disabled: One and Two declare other operand types for it"):
        finished(model, manager)


def test_devices_that_agree_share_an_extension() -> None:
    same = Extension(NAME, tuple(reversed(EXTENSION.operand_types)), EXTENSION.operations)
    manager = manager_of(RecordsBackend("One"), RecordsBackend("Two", [same]))
    model = reverse(manager, 2)
    for device in manager.devices[:2]:
        compilation = Compilation.create_for_devices(model, [device])
        compilation.finish()
        (result,) = compilation(np.array([[1, 2, 3], [4, 5, 6]], np.uint8))
        np.testing.assert_array_equal(result, [[4, 5, 6], [1, 2, 3]])


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


def test_an_application_that_is_on_the_list_of_the_environment_uses_extensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "allowed"
    path.write_text("com.foo.bar\n")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(path))
    manager = manager_of(RecordsBackend(), application="com.foo.bar")
    (result,) = finished(reverse(manager, 1), manager)(np.array([[1, 2, 3]], np.uint8))
    np.testing.assert_array_equal(result, [[1, 2, 3]])
    with bad_data("may not use vendor extensions"):
        reverse(manager_of(RecordsBackend()), 1)


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


OTHER = "com.example.other"


@dataclass(frozen=True, slots=True)
class Complement(Operation):
    """Records whose bytes are all inverted."""

    extension: ClassVar[str] = OTHER
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("records"),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)


def _complement(inputs: Handles, outputs: Outputs) -> None:
    assert inputs[0] is not None
    outputs[0].map()[...] = ~inputs[0].map()


class TwoExtensions(RecordsBackend):
    """Has an operation of the number of REVERSE in another extension."""

    def __init__(self) -> None:
        def create(*operands: object) -> Complement:
            return Complement()

        types = (ExtensionOperandType(TENSOR_RECORD, "TENSOR_RECORD", True, 3),)
        operations = (ExtensionOperation(REVERSE, "COMPLEMENT", create),)
        super().__init__("Two", (EXTENSION, Extension(OTHER, types, operations)))

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, Complement):
            return Support.yes()
        return super().supports(operation, inputs, outputs)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _TwoFactories(super().create_workload_factory(network))


class _TwoFactories(IWorkloadFactory):
    def __init__(self, records: IWorkloadFactory) -> None:
        self._records = records

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if isinstance(operation, Complement):
            return FunctionWorkload(_complement)
        return self._records.create_workload(operation, info)


@pytest.mark.parametrize("order", [(NAME, OTHER), (OTHER, NAME)])
def test_operations_of_one_number_in_two_extensions_are_two(order: tuple[str, str]) -> None:
    manager = manager_of(TwoExtensions())
    model = Model(manager)
    operands = {
        name: [add_operand(model, TENSOR_RECORD, 2, name=name) for _ in "io"] for name in order
    }
    for name, (record, result) in operands.items():
        add_operation(model, REVERSE, [record], [result], name)
    inputs, outputs = zip(*operands.values(), strict=True)
    model.identify_inputs_and_outputs(list(inputs), list(outputs))
    model.finish()
    execution = Execution(finished(model, manager))
    records = np.arange(6, dtype=np.uint8).reshape(2, 3)
    results = {name: np.zeros_like(records) for name in order}
    for index, name in enumerate(order):
        execution.set_input(index, records)
        execution.set_output(index, results[name])
    execution.compute()
    np.testing.assert_array_equal(results[NAME], records[::-1])
    np.testing.assert_array_equal(results[OTHER], ~records)
