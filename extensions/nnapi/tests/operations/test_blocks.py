"""NNAPI operations that move blocks of an image to its channels or batch."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import (
    integer,
    output,
    run,
    tensor,
)

TO_SPACE, TO_DEPTH = OperationCode.DEPTH_TO_SPACE, OperationCode.SPACE_TO_DEPTH
FROM_BATCH, TO_BATCH = OperationCode.BATCH_TO_SPACE_ND, OperationCode.SPACE_TO_BATCH_ND
F32, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32


@pytest.mark.parametrize("code", [TO_SPACE, TO_DEPTH])
@pytest.mark.parametrize("size", [0, -1])
def test_blocks_have_elements(code: OperationCode, size: int) -> None:
    image = tensor(F32, np.ones((1, 2, 2, 4)))
    with pytest.raises(LayerValidationError, match=rf"block size is not positive.*{size}"):
        run(code, [image, integer(size)], [output(F32)])


def test_blocks_divide_the_sizes() -> None:
    image = tensor(F32, np.ones((1, 3, 2, 2)))
    with pytest.raises(LayerValidationError, match=r"rows or columns.*multiple of 2.*got 3"):
        run(TO_DEPTH, [image, integer(2)], [output(F32)])
    with pytest.raises(LayerValidationError, match=r"channels.*multiple of 4.*got 2"):
        run(TO_SPACE, [image, integer(2)], [output(F32)])


@pytest.mark.parametrize("block", [[2], [2, 2, 2], [[2, 2]]])
def test_block_shapes_have_two_sizes(block: object) -> None:
    image = tensor(F32, np.ones((4, 2, 2, 1)))
    with pytest.raises(LayerValidationError, match=r"block_shape has the wrong shape.*\(2,\)"):
        run(FROM_BATCH, [image, tensor(I32, block)], [output(F32)])


@pytest.mark.parametrize("paddings", [[0, 0], [[0, 0]], [[0, 0, 0], [0, 0, 0]], [[0, 0], [-1, 3]]])
def test_paddings_are_two_pairs_of_sizes(paddings: object) -> None:
    image = tensor(F32, np.ones((1, 2, 2, 1)))
    arguments = [image, tensor(I32, [1, 2]), tensor(I32, paddings)]
    with pytest.raises(
        LayerValidationError,
        match=r"paddings has the wrong shape|padding is negative|one pair per",
    ):
        run(TO_BATCH, arguments, [output(F32)])


def test_images_without_elements_are_refused() -> None:
    image = tensor(F32, np.ones((0, 2, 2, 1)))
    with pytest.raises(LayerValidationError, match=r"input has no elements.*\(0, 2, 2, 1\)"):
        run(TO_DEPTH, [image, integer(2)], [output(F32)])
