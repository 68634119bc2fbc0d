"""NNAPI PAD and PAD_V2."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    feature_level,
    integer,
    output,
    run,
    scalar,
    tensor,
)

PAD, PAD_V2 = OperationCode.PAD, OperationCode.PAD_V2
F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
AROUND = tensor(I32, [[1, 2]])


@pytest.mark.parametrize(("code", "zero_point"), [(U8, 9), (S8, -9)])
def test_quantised_tensors_are_padded_with_their_zero_point(
    code: OperandCode, zero_point: int
) -> None:
    source = tensor(code, [5], 0.5, zero_point)
    (result,) = run(PAD, [source, AROUND], [output(code, (), 0.5, zero_point)])
    assert result.tolist() == [zero_point, 5, zero_point, zero_point]


@pytest.mark.parametrize(
    ("code", "value", "stored"), [(U8, 7, 7), (U8, 0x1F0, 0xF0), (S8, -3, -3), (S8, 0x1F0, -16)]
)
def test_a_given_value_is_stored_with_its_low_bits(
    code: OperandCode, value: int, stored: int
) -> None:
    source = tensor(code, [5], 0.5, 1)
    (result,) = run(PAD_V2, [source, AROUND, integer(value)], [output(code, (), 0.5, 1)])
    assert result.tolist() == [stored, 5, stored, stored]


@pytest.mark.parametrize(("code", "kind"), [(F32, OperandCode.FLOAT32), (F16, OperandCode.FLOAT16)])
def test_a_given_value_is_of_the_tensors_type(code: OperandCode, kind: OperandCode) -> None:
    arguments = [tensor(code, [5.0]), AROUND, scalar(kind, 1.5)]
    (result,) = run(PAD_V2, arguments, [output(code)])
    assert result.tolist() == [1.5, 5, 1.5, 1.5]
    with pytest.raises(LayerValidationError, match=r"input 2 \(value\) has the wrong type"):
        feature_level(PAD_V2, [*arguments[:2], integer(1)], [output(code)])


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


@pytest.mark.parametrize(
    ("source", "level"),
    [
        (tensor(F32, [1.0]), 28),
        (tensor(F16, [1.0]), 29),
        (tensor(U8, [1], 0.5), 28),
        (tensor(U8, [1], 0.5, 1), 29),
        (tensor(S8, [1], 0.5), 30),
    ],
)
def test_the_level_of_padding_follows_from_type_and_zero_point(source: Operand, level: int) -> None:
    declared = output(OperandCode(source.type), (), source.scale, source.zero_point)
    assert feature_level(PAD, [source, AROUND], [declared]) == level


def test_padding_is_for_up_to_four_axes() -> None:
    deep = tensor(F32, np.ones((1, 1, 1, 1, 1)))
    with pytest.raises(LayerValidationError, match="'input' has the wrong rank"):
        feature_level(PAD, [deep, tensor(I32, [[0, 0]] * 5)], [output(F32)])
