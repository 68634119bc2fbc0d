"""What NNAPI says of elementwise operations beyond the table of types."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import FuseCode, OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    feature_level,
    integer,
    output,
    run,
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
BOOL8 = OperandCode.TENSOR_BOOL8
O = OperationCode  # noqa: E741  # stands before every name
NONE = integer(FuseCode.NONE)


def arithmetic(
    code: OperationCode, lhs: Operand, rhs: Operand, activation: FuseCode = FuseCode.NONE
) -> list[float]:
    """The result for operands that are not quantised, flat."""
    inputs = (lhs, rhs, integer(activation))
    (result,) = run(code, inputs, [output(OperandCode(lhs.type))])
    return [float(item) for item in result.reshape(-1)]


@pytest.mark.parametrize("code", [O.ADD, O.SUB, O.MUL, O.DIV], ids=lambda code: code.name)
def test_integers_have_no_activation(code: OperationCode) -> None:
    with pytest.raises(LayerValidationError, match=r"no activation. Expected NONE; got RELU6"):
        arithmetic(code, tensor(I32, [1]), tensor(I32, [2]), FuseCode.RELU6)


def test_activation_that_does_not_exist_fails() -> None:
    inputs = (tensor(F32, [1]), tensor(F32, [1]), integer(4))

    with pytest.raises(LayerValidationError, match=r"unknown activation.*0 to 3; got 4"):
        run(O.ADD, inputs, [output(F32)])


def test_quantised_sum_needs_a_scale_that_fixed_point_reaches() -> None:
    # The inputs' doubled scale over 2**20 times the output's must be below 1.
    values = tensor(Q8A, [1], 1.0, 0)
    fits = output(Q8A, [1], 2.0**-18)
    too_small = output(Q8A, [1], 2.0**-19)

    assert run(O.ADD, (values, values, NONE), [fits])[0].tolist() == [255]
    with pytest.raises(LayerValidationError, match=r"too small.*above 1\.90735e-06; got 1\.90735"):
        run(O.ADD, (values, values, NONE), [too_small])


def test_signed_product_needs_a_larger_output_scale_when_it_runs() -> None:
    inputs = (tensor(Q8S, [2], 0.5, 0), tensor(Q8S, [4], 0.5, 0), NONE)
    equal = [output(Q8S, [1], 0.25)]

    assert feature_level(O.MUL, inputs, equal) == 30
    with pytest.raises(LayerValidationError, match=r"scale is too small.*above 0\.25; got 0\.25"):
        run(O.MUL, inputs, equal)


def test_unsigned_product_needs_a_larger_output_scale_when_it_is_built() -> None:
    inputs = (tensor(Q8A, [2], 0.5, 0), tensor(Q8A, [4], 0.5, 0), NONE)

    assert feature_level(O.MUL, inputs, [output(Q8A, [1], 0.2501)]) == 27
    with pytest.raises(LayerValidationError, match=r"above 0\.25, the product.*got 0\.25"):
        feature_level(O.MUL, inputs, [output(Q8A, [1], 0.25)])


def test_scales_are_compared_as_float32() -> None:
    # 0.1f * 0.1f is 0.010000001 in float32, which 0.01f is below of.
    inputs = (tensor(Q8A, [2], 0.1, 0), tensor(Q8A, [4], 0.1, 0), NONE)

    with pytest.raises(LayerValidationError, match=r"scale is too small"):
        feature_level(O.MUL, inputs, [output(Q8A, [1], 0.01)])


def test_signed_quantised_division_is_valid_but_fails() -> None:
    inputs = (tensor(Q8S, [2], 0.5, 0), tensor(Q8S, [4], 0.5, 0), NONE)

    assert feature_level(O.DIV, inputs, [output(Q8S, [1], 1.0)]) == 30
    with pytest.raises(LayerValidationError, match=r"quantised tensors cannot be divided"):
        run(O.DIV, inputs, [output(Q8S, [1], 1.0)])


@pytest.mark.parametrize("code", [O.ADD, O.SUB, O.MUL, O.DIV], ids=lambda code: code.name)
@pytest.mark.parametrize("kind", [F32, F16, I32, Q8S], ids=lambda kind: kind.name)
def test_tensors_without_elements_are_not_checked(code: OperationCode, kind: OperandCode) -> None:
    scale = 0.5 if kind is Q8S else 0.0
    empty = tensor(kind, np.zeros((0, 2)), scale)
    single = tensor(kind, [[1]], scale)
    inputs = (empty, single, integer(FuseCode.RELU))

    (result,) = run(code, inputs, [output(kind, (0, 2), scale / 1024)])

    assert result.shape == (0, 2)


def test_select_does_not_broadcast() -> None:
    inputs = (tensor(BOOL8, [True]), tensor(F32, [1, 2]), tensor(F32, [3, 4]))

    with pytest.raises(LayerValidationError, match=r"different shapes.*\(1,\) for all; got \(2,\)"):
        run(O.SELECT, inputs, [output(F32, [2])])


def test_unary_functions_take_any_rank_but_no_empty_tensor() -> None:
    deep = tensor(F32, np.full((1, 1, 1, 1, 1), 4.0))

    assert run(O.RSQRT, [deep], [output(F32)])[0].reshape(-1).tolist() == [0.5]
    with pytest.raises(LayerValidationError, match=r"no elements, which SQRT does not support"):
        run(O.SQRT, [tensor(F32, np.zeros((0, 2)))], [output(F32)])
