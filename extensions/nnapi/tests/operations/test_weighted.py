"""NNAPI convolutions and FULLY_CONNECTED: how arguments are read and when they are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy.errors import LayerValidationError
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

CONV, DEPTHWISE = OperationCode.CONV_2D, OperationCode.DEPTHWISE_CONV_2D
GROUPED, FULLY = OperationCode.GROUPED_CONV_2D, OperationCode.FULLY_CONNECTED
F32, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
PER_CHANNEL = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
NHWC, NCHW = scalar(OperandCode.BOOL, False), scalar(OperandCode.BOOL, True)
SAME, VALID, NONE = integer(1), integer(2), integer(0)
IMAGE = tensor(F32, np.arange(1.0, 7.0).reshape(1, 2, 3, 1))
POINT = tensor(F32, np.ones((1, 1, 1, 1)))
NO_BIAS = tensor(F32, [0.0])


def integers(*values: int) -> list[Operand]:
    """INT32 constants."""
    return [integer(value) for value in values]


def quantized(
    code: OperandCode, filter_scale: float, bias_scale: float, dims: Sequence[int] = (1, 1, 1, 1)
) -> list[Operand]:
    """Input of scale 0.5, filter and bias; all elements 1."""
    return [
        tensor(code, np.ones((1, 1, 1, 1)), 0.5),
        tensor(code, np.ones(dims), filter_scale),
        tensor(I32, np.ones(1), bias_scale),
    ]


def per_channel(dims: Sequence[int], scales: Sequence[float], channel_dim: int) -> Operand:
    """A filter of ones with a scale per channel."""
    return tensor(
        PER_CHANNEL, np.ones(dims), channel_quant=ChannelQuant(tuple(scales), channel_dim)
    )


@pytest.mark.parametrize(("dilation", "fits"), [(1, False), (2, True)])
def test_explicit_padding_must_be_smaller_than_the_dilated_filter(
    dilation: int, fits: bool
) -> None:
    weights = tensor(F32, np.ones((1, 1, 2, 1)))
    explicit = [*integers(2, 0, 0, 0), *integers(1, 1, 0), NHWC, *integers(dilation, 1)]
    arguments = [IMAGE, weights, NO_BIAS, *explicit]
    if fits:
        (result,) = run(CONV, arguments, [output(F32)])
        assert result[0, ..., 0].tolist() == [[1, 2, 4], [4, 5, 10]]
        return
    with pytest.raises(LayerValidationError, match=r"holds whole windows.*less than 2.*\(2, 0\)"):
        run(CONV, arguments, [output(F32)])


def test_explicit_padding_is_not_negative() -> None:
    arguments = [IMAGE, POINT, NO_BIAS, *integers(-1, 0, 0, 0), *integers(1, 1, 0)]
    with pytest.raises(LayerValidationError, match="padding is negative"):
        run(CONV, arguments, [output(F32)])


@pytest.mark.parametrize("groups", [0, 1, 4])
def test_groups_must_multiply_to_the_channels(groups: int) -> None:
    image, weights = tensor(F32, np.ones((1, 1, 1, 2))), tensor(F32, np.ones((2, 1, 1, 1)))
    bias = tensor(F32, [0.0, 0.0])
    arguments = [image, weights, bias, VALID, *integers(1, 1, groups, 0), NHWC]
    with pytest.raises(LayerValidationError, match=rf"depth times the groups.*2 / {groups}"):
        run(GROUPED, arguments, [output(F32)])


def test_filters_must_split_into_the_groups() -> None:
    image, weights = tensor(F32, np.ones((1, 1, 1, 2))), tensor(F32, np.ones((3, 1, 1, 1)))
    bias = tensor(F32, [0.0, 0.0, 0.0])
    arguments = [image, weights, bias, VALID, *integers(1, 1, 2, 0), NHWC]
    with pytest.raises(LayerValidationError, match=r"multiple of 2 filters.*got 3"):
        run(GROUPED, arguments, [output(F32)])


def test_convolution_does_not_take_groups_from_the_depth() -> None:
    image, weights = tensor(F32, np.ones((1, 1, 1, 2))), tensor(F32, np.ones((2, 1, 1, 1)))
    bias = tensor(F32, [0.0, 0.0])
    arguments = [image, weights, bias, VALID, *integers(1, 1, 0)]
    with pytest.raises(LayerValidationError, match=r"depth is not.*2 at the last dimension"):
        run(CONV, arguments, [output(F32)])


@pytest.mark.parametrize("multiplier", [0, 1, 3])
def test_the_depth_multiplier_must_be_the_filters_own(multiplier: int) -> None:
    image, weights = tensor(F32, np.ones((1, 1, 1, 2))), tensor(F32, np.ones((1, 1, 1, 4)))
    bias = tensor(F32, np.zeros(4))
    arguments = [image, weights, bias, VALID, *integers(1, 1, multiplier, 0)]
    with pytest.raises(LayerValidationError, match=rf"times the multiplier.*2 \* {multiplier}"):
        run(DEPTHWISE, arguments, [output(F32)])


@pytest.mark.parametrize(
    ("code", "dims", "dim", "wanted"),
    [(CONV, (2, 1, 1, 1), 3, 0), (DEPTHWISE, (1, 1, 1, 1), 0, 3), (GROUPED, (2, 1, 1, 1), 1, 0)],
)
def test_scales_of_a_filter_run_along_its_output_channels(
    code: OperationCode, dims: tuple[int, ...], dim: int, wanted: int
) -> None:
    weights = per_channel(dims, (1.0,) * dims[dim], dim)
    image, bias = tensor(U8, np.ones((1, 1, 1, 1)), 0.5), tensor(I32, np.ones(dims[wanted]))
    extra = integers(1) if code is not CONV else []
    layout = [NHWC] if code is GROUPED else []
    arguments = [image, weights, bias, VALID, *integers(1, 1), *extra, NONE, *layout]
    with pytest.raises(LayerValidationError, match=rf"channel dimension {wanted}.*got {dim}"):
        feature_level(code, arguments, [output(U8, (), 1.0)])


@pytest.mark.parametrize("bias_scale", [0.0, 0.125, 0.2500005])
def test_the_bias_counts_in_steps_of_the_products(bias_scale: float) -> None:
    arguments = [*quantized(U8, 0.5, bias_scale), VALID, *integers(1, 1, 0)]
    with pytest.raises(LayerValidationError, match=r"bias has the wrong scale.*0\.25"):
        run(CONV, arguments, [output(U8, (), 0.25)])


def test_the_scale_of_the_bias_may_be_off_by_a_millionth() -> None:
    arguments = [*quantized(U8, 0.5, 0.2500002), VALID, *integers(1, 1, 0)]
    (result,) = run(CONV, arguments, [output(U8, (), 0.25)])
    assert result.ravel().tolist() == [2]


def test_images_have_rows() -> None:
    image = tensor(F32, np.ones((1, 0, 2, 1)))
    with pytest.raises(LayerValidationError, match=r"images have no elements.*\(1, 0, 2, 1\)"):
        run(CONV, [image, POINT, NO_BIAS, SAME, *integers(1, 1, 0)], [output(F32)])


def test_filters_have_elements() -> None:
    weights = tensor(F32, np.ones((1, 0, 1, 1)))
    with pytest.raises(LayerValidationError, match=r"filter has no elements.*\(1, 0, 1, 1\)"):
        run(CONV, [IMAGE, weights, NO_BIAS, SAME, *integers(1, 1, 0)], [output(F32)])


def test_unknown_shapes_of_fully_connected_are_not_checked_before_execution() -> None:
    arguments = [
        Operand(F32, (0, 3)),
        Operand(F32, (0, 4)),
        Operand(F32, (7,)),
        NONE,
    ]
    assert feature_level(FULLY, arguments, [output(F32)]) == 27
