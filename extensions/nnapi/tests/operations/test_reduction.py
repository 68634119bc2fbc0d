"""NNAPI operations that make one element of many."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import (
    integer,
    output,
    run,
    scalar,
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
BOOL = OperandCode.TENSOR_BOOL8
X = tensor(F32, [[1, 2, 3], [4, 5, 6]])
KEEP, DROP = scalar(OperandCode.BOOL, True), scalar(OperandCode.BOOL, False)


@pytest.mark.parametrize(("flag", "shape"), [(0, (3,)), (1, (1, 3)), (7, (1, 3)), (-1, (3,))])
def test_mean_keeps_axes_if_its_flag_is_above_0(flag: int, shape: tuple[int, ...]) -> None:
    (result,) = run(OperationCode.MEAN, [X, tensor(I32, [0]), integer(flag)], [output(F32)])
    assert result.shape == shape
    assert result.reshape(-1).tolist() == [2.5, 3.5, 4.5]


@pytest.mark.parametrize("code", [U8, S8])
def test_quantised_means_round_the_stored_integers_down(code: OperandCode) -> None:
    shift = 128 if code == S8 else 0
    stored = np.array([[1, 2], [4, 4], [200, 203]]) - shift
    operand = tensor(code, stored, 0.5, 5)
    inputs = [operand, tensor(I32, [-1]), integer(0)]
    (result,) = run(OperationCode.MEAN, inputs, [output(code, (3,), 0.5, 5)])
    assert result.tolist() == (np.array([1, 4, 201]) - shift).tolist()


def test_a_mean_keeps_the_quantisation() -> None:
    inputs = [tensor(U8, [1, 2], 0.5, 5), tensor(I32, [0]), integer(0)]
    with pytest.raises(LayerValidationError, match="wrong quantisation"):
        run(OperationCode.MEAN, inputs, [output(U8, (1,), 1.0, 5)])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (OperationCode.REDUCE_SUM, 21),
        (OperationCode.REDUCE_PROD, 720),
        (OperationCode.REDUCE_MAX, 6),
        (OperationCode.REDUCE_MIN, 1),
    ],
)
@pytest.mark.parametrize("data_type", [F32, F16])
def test_one_axis_of_size_1_is_left_of_all(
    code: OperationCode, expected: float, data_type: OperandCode
) -> None:
    operand = tensor(data_type, [[1, 2, 3], [4, 5, 6]])
    # Axes may come twice, and count from the end.
    inputs = [operand, tensor(I32, [1, -1, -2]), DROP]
    (result,) = run(code, inputs, [output(data_type)])
    assert result.tolist() == [expected]


def test_reduced_axes_may_stay() -> None:
    (result,) = run(OperationCode.REDUCE_SUM, [X, tensor(I32, [1]), KEEP], [output(F32)])
    assert result.tolist() == [[6], [15]]


@pytest.mark.parametrize(
    ("code", "expected"),
    [(OperationCode.REDUCE_ANY, [1, 1, 0]), (OperationCode.REDUCE_ALL, [1, 0, 0])],
)
def test_truth_values(code: OperationCode, expected: list[int]) -> None:
    operand = tensor(BOOL, [[1, 0, 0], [1, 1, 0]])
    (result,) = run(code, [operand, tensor(I32, [0]), DROP], [output(BOOL)])
    assert result.tolist() == expected


def test_a_product_with_0_is_0() -> None:
    operand = tensor(F32, [[0, np.inf], [np.nan, 0], [2, np.inf]])
    (result,) = run(OperationCode.REDUCE_PROD, [operand, tensor(I32, [1]), DROP], [output(F32)])
    assert result.tolist() == [0, 0, np.inf]


def test_the_greatest_of_quantised_elements_keeps_its_quantisation() -> None:
    inputs = [tensor(S8, [[-5, 3], [-128, -7]], 0.5, 9), tensor(I32, [1]), DROP]
    (result,) = run(OperationCode.REDUCE_MAX, inputs, [output(S8, (2,), 0.5, 9)])
    assert result.tolist() == [3, -7]


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_beyond_the_rank_fail(axis: int) -> None:
    with pytest.raises(LayerValidationError, match="axis is out of range"):
        run(OperationCode.REDUCE_SUM, [X, tensor(I32, [axis]), DROP], [output(F32)])


def test_the_first_of_equal_elements_is_found() -> None:
    operand = tensor(U8, [[3, 7, 7], [1, 0, 0]], 0.5, 9)
    (most,) = run(OperationCode.ARGMAX, [operand, integer(-1)], [output(I32)])
    (least,) = run(OperationCode.ARGMIN, [operand, integer(1)], [output(I32)])
    assert most.tolist() == [1, 0]
    assert least.tolist() == [0, 1]


def test_searching_a_vector_leaves_one_axis() -> None:
    (position,) = run(OperationCode.ARGMIN, [tensor(I32, [4, -2, 5]), integer(0)], [output(I32)])
    assert position.tolist() == [1]
