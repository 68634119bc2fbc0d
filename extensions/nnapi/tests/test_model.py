"""Calls that build a model, in the order in which they check their arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy_nnapi import Memory, Model, OperandCode, OperandType, OperationCode, ResultCode
from armpy_nnapi.description.model_description import Lifetime

from .nnapi_models import (
    FLOAT_2,
    FLOAT_ANY,
    FLOAT_OPEN,
    INT,
    add_activation,
    add_operands,
    fails,
    floats,
    sum_model,
)

C = OperandCode
PER_CHANNEL = OperandType(C.TENSOR_QUANT8_SYMM_PER_CHANNEL, (3, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.set_operand_value(2, None),
        lambda model: model.set_operand_value(-1, None),
        lambda model: model.set_operand_value_from_memory(2, Memory(b"12345678"), 0, 8),
        lambda model: model.set_operand_value_from_model(2, sum_model()),
        lambda model: model.set_operand_symm_per_channel_quant_params(2, [1.0], 0),
        lambda model: model.set_operand_extension_data(2, b"x"),
        lambda model: model.identify_inputs_and_outputs([0], [2]),
    ],
)
def test_indexes_must_be_those_of_operands(call: Callable[[Model], object]) -> None:
    model = Model()
    add_operands(model, FLOAT_2, FLOAT_2)
    with fails(
        ResultCode.BAD_DATA, "the operand's index is out of range. Expected an index below 2"
    ):
        call(model)


def test_oem_operands_are_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    Model().add_operand(OperandType(C.OEM_SCALAR))
    assert "OEM types are deprecated" in caplog.text


@pytest.mark.parametrize("operand_type", [FLOAT_OPEN, FLOAT_ANY])
def test_values_need_fully_known_dimensions(operand_type: OperandType) -> None:
    model = Model()
    index = model.add_operand(operand_type)
    with fails(ResultCode.BAD_DATA, "the operand's dimensions are not fully known"):
        model.set_operand_value(index, floats(1, 2))
    with fails(ResultCode.BAD_DATA, "the operand's dimensions are not fully known"):
        model.set_operand_value_from_memory(index, Memory(bytearray(8)), 0, 8)
    model.set_operand_value(index, None)


def test_values_have_their_operands_length() -> None:
    model = Model()
    index = model.add_operand(FLOAT_2)
    with fails(ResultCode.BAD_DATA, "wrong length. Expected 8 bytes for TENSOR_FLOAT32"):
        model.set_operand_value(index, floats(1, 2, 3))
    with fails(ResultCode.BAD_DATA, "wrong length. Expected 8 bytes.*got 4 bytes"):
        model.set_operand_value_from_memory(index, Memory(bytearray(8)), 0, 4)


def test_values_may_be_bytes_arrays_or_numbers() -> None:
    model = Model()
    a, b, c, d = add_operands(model, FLOAT_2, FLOAT_2, INT, OperandType(C.BOOL))
    model.set_operand_value(a, floats(1, 2).tobytes())
    model.set_operand_value(b, floats(1, 2)[::-1])
    model.set_operand_value(c, 5)
    model.set_operand_value(d, True)
    with fails(ResultCode.BAD_DATA, "these are not elements"):
        model.set_operand_value(a, "text")
    with fails(ResultCode.BAD_DATA, "the number is not an integer"):
        model.set_operand_value(c, 1.5)
    with fails(ResultCode.BAD_DATA, "out of the range of int32"):
        model.set_operand_value(c, 2**31)
    with fails(ResultCode.BAD_DATA, "a plain number is given"):
        model.set_operand_value(a, 1.0)


@pytest.mark.parametrize(("size", "is_copied"), [(32, True), (33, False)])
def test_values_up_to_128_bytes_are_copied_at_once(size: int, is_copied: bool) -> None:
    model = Model()
    tensor = OperandType(C.TENSOR_FLOAT32, (size,))
    a, constant, total = add_operands(model, tensor, tensor, tensor)
    values = np.zeros(size, np.float32)
    model.set_operand_value(constant, values)
    values[0] = 7
    model.add_operation(OperationCode.ADD, [a, constant, add_activation(model)], [total])
    model.identify_inputs_and_outputs([a], [total])
    model.finish()
    values[0] = 9
    operand = model.description.main.operands[constant]
    wanted = Lifetime.CONSTANT_COPY if is_copied else Lifetime.CONSTANT_REFERENCE
    assert operand.lifetime is wanted
    elements = operand.elements
    assert elements is not None
    assert elements[0] == (0 if is_copied else 7)


@pytest.mark.parametrize(
    ("scales", "channel_dim", "problem"),
    [
        ([1.0, 2.0], 2, "the channel dimension is out of range"),
        ([1.0, 2.0], -1, "the channel dimension is out of range"),
        ([1.0, 2.0], 0, "the number of scales is not that of channels. Expected 3"),
        ([], 0, "the number of scales is not that of channels"),
        ([1.0, 0.0, 1.0], 0, "a scale is not above 0"),
        ([1.0, -1.0, 1.0], 0, "a scale is not above 0"),
    ],
)
def test_per_channel_scales_fit_their_operand(
    scales: list[float], channel_dim: int, problem: str
) -> None:
    model = Model()
    index = model.add_operand(PER_CHANNEL)
    with fails(ResultCode.BAD_DATA, problem):
        model.set_operand_symm_per_channel_quant_params(index, scales, channel_dim)
    model.set_operand_symm_per_channel_quant_params(index, [1.0, 2.0], 1)


def test_only_per_channel_operands_have_per_channel_scales() -> None:
    model = Model()
    with fails(ResultCode.BAD_DATA, "TENSOR_QUANT8_SYMM_PER_CHANNEL go together"):
        model.set_operand_symm_per_channel_quant_params(model.add_operand(FLOAT_2), [1, 1], 0)


@pytest.mark.parametrize("code", [-1, 102, 9999, 10001])
def test_codes_of_no_operation_are_rejected(code: int) -> None:
    model = Model()
    operands = add_operands(model, FLOAT_2, FLOAT_2)
    with fails(
        ResultCode.BAD_DATA,
        "unknown operation. Expected an OperationCode|belongs to no extension",
    ):
        model.add_operation(code, operands[:1], operands[1:])


def test_operands_are_listed_by_integers() -> None:
    model = Model()
    a, b = add_operands(model, FLOAT_2, FLOAT_2)
    with fails(ResultCode.BAD_DATA, "a list of operands has something else in it"):
        model.add_operation(OperationCode.RELU, ["first"], [b])  # type: ignore[list-item]
    model.add_operation(OperationCode.RELU, np.array([a]), [np.int64(b)])  # type: ignore[arg-type, list-item]
    with fails(ResultCode.BAD_DATA, "a list of operands has something else in it"):
        model.identify_inputs_and_outputs([0.0], [1])  # type: ignore[list-item]


def test_an_operations_operands_are_checked_when_it_is_added() -> None:
    model = Model()
    a, b, c = add_operands(model, FLOAT_2, INT, FLOAT_2)
    with fails(ResultCode.BAD_DATA, "ADD: the number of operands is wrong. Expected 3 inputs"):
        model.add_operation(OperationCode.ADD, [a, b], [c])
    with fails(ResultCode.BAD_DATA, r"ADD: input 1 \(input1\) has the wrong type"):
        model.add_operation(OperationCode.ADD, [a, b, b], [c])


@pytest.mark.parametrize(
    ("inputs", "outputs", "problem"),
    [
        ([0, 0], [1], "operand 0 cannot be an input or output twice"),
        ([0], [1, 1], "operand 1 cannot be an input or output twice"),
        ([0], [0], "operand 0 cannot be an input or output twice"),
        ([2], [1], "operand 2 cannot be an input or output.*got CONSTANT_COPY"),
        ([0], [3], "operand 3 cannot be an input or output.*got NO_VALUE"),
    ],
)
def test_inputs_and_outputs_are_operands_without_values(
    inputs: list[int], outputs: list[int], problem: str
) -> None:
    model = Model()
    add_operands(model, FLOAT_2, FLOAT_2, FLOAT_2, FLOAT_2)
    model.set_operand_value(2, floats(1, 2))
    model.set_operand_value(3, None)
    with fails(ResultCode.BAD_DATA, problem):
        model.identify_inputs_and_outputs(inputs, outputs)


def test_a_block_finishes_its_model() -> None:
    with Model() as model:
        a, b = add_operands(model, FLOAT_2, FLOAT_2)
        model.add_operation(OperationCode.RELU, [a], [b])
        model.identify_inputs_and_outputs([a], [b])
    assert model.is_finished
    with pytest.raises(KeyError), Model() as broken:
        raise KeyError
    assert not broken.is_finished


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda model: model.add_operand(C.TENSOR_FLOAT32), "wrong kind. Expected OperandType"),
        (lambda model: model.from_description({}), "wrong kind. Expected ModelDescription"),
        (lambda model: model.set_operand_value("0", None), "the operand's index is not an integer"),
        (
            lambda model: model.set_operand_value_from_memory(0, bytes(8), 0, 8),
            "wrong kind. Expected Memory",
        ),
        (
            lambda model: model.set_operand_value_from_model(0, "model"),
            "wrong kind. Expected Model",
        ),
        (
            lambda model: model.set_operand_symm_per_channel_quant_params(0, 1.0, 0),
            "these are not scales. Expected a list of numbers",
        ),
        (
            lambda model: model.set_operand_symm_per_channel_quant_params(0, ["a"], 0),
            "these are not scales. Expected a list of numbers",
        ),
        (lambda model: model.set_operand_extension_data(0, "text"), "the data are not bytes"),
        (lambda model: model.set_operand_extension_data(0, 8), "the data are not bytes"),
        (
            lambda model: model.add_operation("RELU", [0], [1]),
            "the operation's code is not an integer. Got 'RELU'",
        ),
    ],
)
def test_arguments_of_another_kind_are_rejected(
    call: Callable[[Model], object], problem: str
) -> None:
    model = Model()
    add_operands(model, FLOAT_2, FLOAT_2)
    with fails(ResultCode.BAD_DATA, problem):
        call(model)
