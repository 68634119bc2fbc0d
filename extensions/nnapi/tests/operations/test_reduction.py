"""NNAPI operations that make one element of many."""

from __future__ import annotations

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


def test_a_mean_keeps_the_quantisation() -> None:
    inputs = [tensor(U8, [1, 2], 0.5, 5), tensor(I32, [0]), integer(0)]
    with pytest.raises(LayerValidationError, match="wrong quantisation"):
        run(OperationCode.MEAN, inputs, [output(U8, (1,), 1.0, 5)])


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_beyond_the_rank_fail(axis: int) -> None:
    with pytest.raises(LayerValidationError, match="axis is out of range"):
        run(OperationCode.REDUCE_SUM, [X, tensor(I32, [axis]), DROP], [output(F32)])
