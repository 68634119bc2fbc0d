"""NNAPI pooling operations."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    integer,
    output,
    run,
    tensor,
)

AVERAGE, L2, MAX = (
    OperationCode.AVERAGE_POOL_2D,
    OperationCode.L2_POOL_2D,
    OperationCode.MAX_POOL_2D,
)
F32 = OperandCode.TENSOR_FLOAT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
IMAGE = tensor(F32, np.arange(1.0, 7.0).reshape(1, 2, 3, 1))


def integers(*values: int) -> list[Operand]:
    """INT32 constants."""
    return [integer(value) for value in values]


@pytest.mark.parametrize("side", range(4))
def test_padding_is_smaller_than_the_window(side: int) -> None:
    padding = [0, 0, 0, 0]
    padding[side] = 2
    arguments = [IMAGE, *integers(*padding), *integers(1, 1), *integers(2, 2), integer(0)]
    with pytest.raises(LayerValidationError, match=r"holds whole windows.*less than 2"):
        run(MAX, arguments, [output(F32)])


def test_the_models_output_is_quantised_as_the_input() -> None:
    image = tensor(U8, np.ones((1, 1, 1, 1)), 0.5, 3)
    arguments = [image, integer(2), *integers(1, 1), *integers(1, 1), integer(0)]
    with pytest.raises(LayerValidationError, match=r"wrong quantisation.*scale 0.5.*zero point 3"):
        run(MAX, arguments, [output(U8, (), 0.5, 4)])
