"""Optional operands that reach operations through IF and WHILE, with and without a value."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops.operation import Array
from armpy_nnapi import Model, OperandCode, OperandType, OperationCode, ResultCode

from .nnapi_models import (
    BOOL_1,
    MODEL,
    add_activation,
    add_operands,
    compiled,
    fails,
)

SQUARE = OperandType(OperandCode.TENSOR_FLOAT32, (2, 2))
AXES = OperandType(OperandCode.TENSOR_INT32, (2,))
TURN = OperandType(OperandCode.TENSOR_INT32, (1,))
X = np.array([[1, 2], [3, 4]], np.float32)
UNCHANGED = np.array([0, 1], np.int32)
YES = np.array([True])
FIRST = np.zeros(1, np.int32)


def transposition() -> Model:
    """TRANSPOSE, whose second operand is optional: without it a matrix's axes are swapped."""
    model = Model()
    x, axes, out = add_operands(model, SQUARE, AXES, SQUARE)
    model.add_operation(OperationCode.TRANSPOSE, [x, axes], [out])
    model.identify_inputs_and_outputs([x, axes], [out])
    model.finish()
    return model


def branching(*, has_input: bool) -> Model:
    """IF with transpositions; the axes are an input of the model, or have no value."""
    model = Model()
    condition, first, other, x, axes, out = add_operands(
        model, BOOL_1, MODEL, MODEL, SQUARE, AXES, SQUARE
    )
    for operand in (first, other):
        model.set_operand_value_from_model(operand, transposition())
    if not has_input:
        model.set_operand_value(axes, None)
    model.add_operation(OperationCode.IF, [condition, first, other, x, axes], [out])
    model.identify_inputs_and_outputs([condition, x, *([axes] if has_input else [])], [out])
    model.finish()
    return model


def looping() -> Model:
    """WHILE that transposes once; axes are an input that stays the same."""
    condition = Model()
    x, turn, axes, end, out = add_operands(condition, SQUARE, TURN, AXES, TURN, BOOL_1)
    condition.set_operand_value(end, np.ones(1, np.int32))
    condition.add_operation(OperationCode.LESS, [turn, end], [out])
    condition.identify_inputs_and_outputs([x, turn, axes], [out])
    condition.finish()
    body = Model()
    x, turn, axes, step, turned, after = add_operands(body, SQUARE, TURN, AXES, TURN, SQUARE, TURN)
    body.set_operand_value(step, np.ones(1, np.int32))
    body.add_operation(OperationCode.TRANSPOSE, [x, axes], [turned])
    body.add_operation(OperationCode.ADD, [turn, step, add_activation(body)], [after])
    body.identify_inputs_and_outputs([x, turn, axes], [turned, after])
    body.finish()
    model = Model()
    test, run, x, turn, axes, out = add_operands(model, MODEL, MODEL, SQUARE, TURN, AXES, SQUARE)
    model.set_operand_value_from_model(test, condition)
    model.set_operand_value_from_model(run, body)
    model.add_operation(OperationCode.WHILE, [test, run, x, turn, axes], [out])
    model.identify_inputs_and_outputs([x, turn, axes], [out])
    model.finish()
    return model


def test_an_operand_without_a_value_is_left_out_in_both_branches() -> None:
    compilation = compiled(branching(has_input=False))
    for condition in (True, False):
        assert compilation(np.array([condition]), X)[0].tolist() == [[1, 3], [2, 4]]


def test_an_input_may_be_left_out_from_run_to_run() -> None:
    compilation = compiled(branching(has_input=True))
    assert compilation(YES, X, UNCHANGED)[0].tolist() == [[1, 2], [3, 4]]
    assert compilation(YES, X, None)[0].tolist() == [[1, 3], [2, 4]]


def test_what_a_branch_needs_may_not_be_left_out() -> None:
    compilation = compiled(branching(has_input=True))
    with fails(ResultCode.OP_FAILED, "TRANSPOSE.*input has no value"):
        compilation(YES, None, UNCHANGED)


def test_a_loop_may_go_without_what_it_does_not_change() -> None:
    compilation = compiled(looping())
    assert compilation(X, FIRST, UNCHANGED)[0].tolist() == [[1, 2], [3, 4]]
    assert compilation(X, FIRST, None)[0].tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("position", [0, 1])
def test_a_loop_needs_what_it_changes(position: int) -> None:
    arguments: list[Array | None] = [X, FIRST, UNCHANGED]
    arguments[position] = None
    with fails(ResultCode.OP_FAILED, f"WHILE_0: carried value {position} has no value"):
        compiled(looping())(*arguments)
