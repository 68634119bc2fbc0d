"""Models that leave dimensions, or ranks, of inputs, inner operands and outputs open."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from armpy_nnapi import Execution, Model, OperandCode, OperandType, OperationCode, ResultCode

from .nnapi_models import (
    add_activation,
    add_operands,
    compiled,
    fails,
)

C = OperandCode
KNOWN = (2, 3)
OPEN: dict[str, tuple[int, ...]] = {
    "known": (2, 3),
    "one open": (2, 0),
    "all open": (0, 0),
    "rank open": (),
}
A = np.arange(6, dtype=np.float32).reshape(KNOWN)
B = np.array([[10, 20, 30], [40, 50, 60]], np.float32)


def tensor(dimensions: tuple[int, ...]) -> OperandType:
    return OperandType(C.TENSOR_FLOAT32, dimensions)


def chain(first: str, second: str, between: str, output: str) -> Execution:
    """FLOOR of a sum, its operands open as named."""
    model = Model()
    types = [tensor(OPEN[name]) for name in (first, second, between, output)]
    a, b, total, rounded = add_operands(model, *types)
    model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
    model.add_operation(OperationCode.FLOOR, [total], [rounded])
    model.identify_inputs_and_outputs([a, b], [rounded])
    model.finish()
    return Execution(compiled(model))


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize(("first", "second", "between", "output"), list(product(OPEN, repeat=4)))
def test_what_the_model_leaves_open_is_said_by_the_execution(
    first: str, second: str, between: str, output: str
) -> None:
    execution = chain(first, second, between, output)
    result = np.zeros(KNOWN, np.float32)
    execution.set_input(0, A, tensor(KNOWN))
    execution.set_input(1, B, tensor(KNOWN))
    execution.set_output(0, result)
    execution.compute()
    np.testing.assert_array_equal(result, [[10, 21, 32], [43, 54, 65]])
    assert execution.get_output_operand_dimensions(0) == KNOWN


@pytest.mark.parametrize("first", ["one open", "all open", "rank open"])
def test_inputs_that_do_not_go_together_fail_when_they_meet(first: str) -> None:
    execution = chain(first, "known", "rank open", "rank open")
    execution.set_input(0, np.zeros((2, 2), np.float32), tensor((2, 2)))
    execution.set_input(1, B)
    execution.set_output(0, np.zeros(KNOWN, np.float32))
    with fails(ResultCode.OP_FAILED, "ADD_0"):
        execution.compute()


def test_an_inner_operand_of_other_dimensions_than_declared_fails() -> None:
    model = Model()
    a, total, rounded = add_operands(model, tensor((0, 0)), tensor((5, 0)), tensor(()))
    model.add_operation(OperationCode.RELU, [a], [total])
    model.add_operation(OperationCode.FLOOR, [total], [rounded])
    model.identify_inputs_and_outputs([a], [rounded])
    model.finish()
    with fails(ResultCode.OP_FAILED, "RELU_0.*not those that the model declares"):
        compiled(model)(A)
