"""NNAPI RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    integer,
    output,
    run,
    scalar,
    tensor,
)

BILINEAR, NEAREST = OperationCode.RESIZE_BILINEAR, OperationCode.RESIZE_NEAREST_NEIGHBOR
F32, F16 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16
YES, NO = scalar(OperandCode.BOOL, True), scalar(OperandCode.BOOL, False)
IMAGE = tensor(F32, np.arange(6.0).reshape(1, 2, 3, 1))


def factor(value: float, code: OperandCode = OperandCode.FLOAT32) -> Operand:
    """A factor of the input's size."""
    return scalar(code, value)


def test_products_of_factors_are_rounded_to_float32_first() -> None:
    # float32(1 / 3) * 3 is 1 in float32, though above 1 before it is rounded.
    third = float(np.float32(1.0) / np.float32(3.0))
    (result,) = run(NEAREST, [IMAGE, factor(third), factor(1.0), NO], [output(F32)])
    assert result.shape == (1, 2, 1, 1)


@pytest.mark.parametrize("code", [BILINEAR, NEAREST])
def test_aligned_corners_and_half_pixels_exclude_each_other(code: OperationCode) -> None:
    with pytest.raises(LayerValidationError, match="exclude each other"):
        run(code, [IMAGE, integer(2), integer(2), NO, YES, YES], [output(F32)])


@pytest.mark.parametrize(
    "size", [integer(0), integer(-3), factor(0.1), factor(-1.0), factor(math.nan), factor(3e38)]
)
def test_sizes_are_above_zero_and_have_32_bits(size: Operand) -> None:
    other = scalar(OperandCode(size.type), 1)
    with pytest.raises(LayerValidationError, match="width is out of range"):
        run(NEAREST, [IMAGE, size, other, NO], [output(F32)])
