"""NNAPI TRANSPOSE_CONV_2D: sizes from paddings, and paddings from sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import ChannelQuant, Operand

from .nnapi_operation import (
    feature_level,
    integer,
    output,
    run,
    scalar,
    tensor,
)

CODE = OperationCode.TRANSPOSE_CONV_2D
F32, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
NHWC, NCHW = scalar(OperandCode.BOOL, False), scalar(OperandCode.BOOL, True)
SAME, VALID = 1, 2
BIAS = tensor(F32, [100.0])


def spread(
    row: Sequence[float],
    weights: Sequence[float],
    padding: Sequence[Operand],
    stride: int = 1,
    layout: Operand = NHWC,
) -> Array:
    """A row of an image, spread by a filter of one row over a bias of 100."""
    shape = (1, 1, 1, len(row)) if layout is NCHW else (1, 1, len(row), 1)
    tensors = [
        tensor(F32, np.reshape(row, shape)),
        tensor(F32, np.reshape(weights, (1, 1, len(weights), 1))),
        BIAS,
    ]
    scalars = [integer(stride), integer(1), integer(0), layout]
    (result,) = run(CODE, [*tensors, *padding, *scalars], [output(F32)])
    return result


def explicit(left: int, right: int, top: int = 0, bottom: int = 0) -> list[Operand]:
    """Explicit padding."""
    return [integer(size) for size in (left, right, top, bottom)]


def implicit(code: int, *output_shape: int) -> list[Operand]:
    """The output's shape, and implicit padding."""
    return [tensor(I32, output_shape), integer(code)]


def test_negative_padding_after_adds_elements_of_the_bias() -> None:
    tensors = [tensor(F32, np.ones((1, 1, 1, 1))), tensor(F32, np.ones((1, 1, 1, 1))), BIAS]
    scalars = [integer(1), integer(1), integer(0), NHWC]
    arguments = [*tensors, *explicit(0, -2, 0, -1), *scalars]
    (result,) = run(CODE, arguments, [output(F32)])
    assert result[0, ..., 0].tolist() == [[101, 100, 100], [100, 100, 100]]


@pytest.mark.parametrize("padding", [explicit(-1, 0), explicit(0, 0, -1, 0)])
def test_padding_in_front_is_not_below_zero(padding: list[Operand]) -> None:
    with pytest.raises(LayerValidationError, match="padding is negative"):
        spread([1, 2], [1, 10], padding)


@pytest.mark.parametrize(("after", "size"), [(1, 0), (2, -1)])
def test_something_of_the_output_must_be_left(after: int, size: int) -> None:
    with pytest.raises(LayerValidationError, match=rf"nothing is left.*got \(1, {size}\)"):
        spread([1, 2], [1, 10], explicit(2, after))


def test_same_padding_is_below_zero_where_windows_do_not_reach_the_end() -> None:
    # (2 - 1) * 2 + 1 - 4 = -1
    result = spread([1, 2], [10], implicit(SAME, 1, 1, 4, 1), stride=2)
    assert result.ravel().tolist() == [110, 100, 120, 100]


def test_only_spatial_sizes_of_the_output_shape_matter() -> None:
    result = spread([1, 2], [10], implicit(SAME, -7, 1, 3, 99), stride=2)
    assert result.shape == (1, 1, 3, 1)


def test_without_padding_the_output_shape_does_not_matter() -> None:
    result = spread([1, 2], [1, 10], implicit(VALID, 1, 1, 77, 1), stride=3)
    assert result.ravel().tolist() == [101, 110, 100, 102, 120]


def test_the_output_shape_has_four_sizes() -> None:
    with pytest.raises(LayerValidationError, match=r"output_shape has the wrong shape.*\(4,\)"):
        spread([1, 2], [1], implicit(SAME, 1, 2))


@pytest.mark.parametrize("stride", [0, -1])
def test_the_stride_is_above_zero(stride: int) -> None:
    with pytest.raises(LayerValidationError, match="stride is too small"):
        spread([1, 2], [1], implicit(SAME, 1, 1, 2, 1), stride=stride)


@pytest.mark.parametrize(("code", "level"), [(U8, 29), (S8, 30)])
def test_scales_of_filters_run_along_the_first_dimension(code: OperandCode, level: int) -> None:
    image, bias = tensor(code, np.ones((1, 1, 1, 1)), 1.0), tensor(I32, [0, 0])
    scalars = [*explicit(0, 0), integer(1), integer(1), integer(0), NHWC]
    declared = [output(code, (), 1.0)]
    for dim, scales in ((0, (1.0, 2.0)), (3, (1.0,))):
        weights = tensor(
            OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL,
            np.ones((2, 1, 1, 1)),
            channel_quant=ChannelQuant(scales, dim),
        )
        arguments = [image, weights, bias, *scalars]
        if dim == 0:
            assert feature_level(CODE, arguments, declared) == level
            continue
        with pytest.raises(LayerValidationError, match=r"channel dimension 0.*got 3"):
            feature_level(CODE, arguments, declared)


def test_the_bias_counts_in_steps_of_the_products() -> None:
    tensors = [
        tensor(U8, np.ones((1, 1, 1, 1)), 0.5),
        tensor(U8, np.ones((1, 1, 1, 1)), 0.5),
        tensor(I32, [0], 0.5),
    ]
    arguments = [*tensors, *explicit(0, 0), integer(1), integer(1), integer(0), NHWC]
    with pytest.raises(LayerValidationError, match=r"bias has the wrong scale.*0\.25.*0\.5"):
        run(CODE, arguments, [output(U8, (), 1.0)])
