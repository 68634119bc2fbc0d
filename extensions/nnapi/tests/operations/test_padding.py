"""NNAPI PAD and PAD_V2."""

from __future__ import annotations

import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import (
    integer,
    output,
    run,
    tensor,
)

PAD, PAD_V2 = OperationCode.PAD, OperationCode.PAD_V2
F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
AROUND = tensor(I32, [[1, 2]])


@pytest.mark.parametrize(
    ("code", "value", "stored"), [(U8, 7, 7), (U8, 0x1F0, 0xF0), (S8, -3, -3), (S8, 0x1F0, -16)]
)
def test_a_given_value_is_stored_with_its_low_bits(
    code: OperandCode, value: int, stored: int
) -> None:
    source = tensor(code, [5], 0.5, 1)
    (result,) = run(PAD_V2, [source, AROUND, integer(value)], [output(code, (), 0.5, 1)])
    assert result.tolist() == [stored, 5, stored, stored]


@pytest.mark.parametrize(
    ("paddings", "message"),
    [
        ([1, 2], r"paddings has the wrong shape.*\(n, 2\)"),
        ([[1, 2, 3]], r"paddings has the wrong shape.*\(n, 2\)"),
        ([[1, 2], [3, 4]], "Expected 1 entries; got 2"),
        ([[-1, 2]], "padding is negative.*-1"),
    ],
)
def test_paddings_are_a_pair_of_sizes_per_axis(paddings: object, message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        run(PAD, [tensor(F32, [5.0]), tensor(I32, paddings)], [output(F32)])
