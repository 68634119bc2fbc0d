"""Operations that multiply by weights: convolutions and FULLY_CONNECTED."""

from __future__ import annotations

import math

import numpy as np

from armpy.graph import Value
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.operation import require
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout, float32_product, fused_activation
from armpy_nnapi.operations.windows import (
    ACTIVATION,
    DEFAULT_NCHW,
    DILATIONS,
    IMAGE,
    NCHW,
    STRIDES,
    require_filter,
    require_image,
    stride,
    window_forms,
    window_padding,
)

_C = OperandCode

FILTER = Argument("filter", "filter", ranks=(4,))
BIAS = Argument("bias", "bias", "One element per output channel, of scale input * filter.")
CONVOLUTION_ROWS = rows(
    "T filter bias",
    (_C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, 27),
    (_C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT8_ASYMM, _C.TENSOR_INT32, 27),
    (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT8_SYMM_PER_CHANNEL, _C.TENSOR_INT32, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_INT32, 30),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_QUANT8_SYMM_PER_CHANNEL, _C.TENSOR_INT32, 30),
)
# FULLY_CONNECTED takes no scales per channel.
_FULLY_CONNECTED_ROWS = tuple(
    row for row in CONVOLUTION_ROWS if row.types["filter"] != _C.TENSOR_QUANT8_SYMM_PER_CHANNEL
)
_GROUPED = (Argument("num_groups", _C.INT32), ACTIVATION, NCHW)
_DEPTH_MULTIPLIER = Argument("depth_multiplier", _C.INT32, "Output channels per input channel.")


def check_channel_dim(arguments: Arguments, dim: int) -> int:
    """Check that a filter's own scales run along its output channels.

    Parameters
    ----------
    dim : int
        Dimension of the output channels.

    Returns
    -------
    int
        The feature level of the form and the types.
    """
    filter_operand = arguments["filter"]
    quant = filter_operand.channel_quant
    require(
        filter_operand.type != _C.TENSOR_QUANT8_SYMM_PER_CHANNEL
        or (quant is not None and quant.channel_dim == dim),
        "the filter's scales run along the wrong dimension",
        expected=f"channel dimension {dim}",
        actual="no scales" if quant is None else quant.channel_dim,
    )
    return arguments.match.feature_level


def _check_convolution(arguments: Arguments, dim: int) -> int:
    """Level 29 if the scales are not those of level 27."""
    level = check_channel_dim(arguments, dim)
    # The rule is about the output's scale, but NNAPI has always compared the input's.
    return _level_of_scales(arguments, arguments["input"].scale, level)


def _check_fully_connected(arguments: Arguments) -> int:
    """Shapes as far as they are known; level 29 if the scales are not those of level 27."""
    # Only the model's own dimensions; the rest is checked when all are known.
    vectors, weights = arguments["input"].dimensions, arguments["filter"].dimensions
    bias = arguments["bias"].dimensions
    if vectors and weights and bias:
        units, depth = weights[0], weights[-1]
        # An open dimension makes the product 0, which fits every depth.
        require(
            not depth or math.prod(vectors) % depth == 0,
            "the input's elements do not split into vectors of the weights' depth",
            expected=f"a multiple of {depth} elements",
            actual=vectors,
        )
        require(
            not units or not bias[0] or units == bias[0],
            "the bias has the wrong length",
            expected=f"{units}, one per unit",
            actual=bias[0],
        )
    level = arguments.match.feature_level
    return _level_of_scales(arguments, arguments["output"].scale, level)


def _level_of_scales(arguments: Arguments, scale: float, level: int) -> int:
    """Require level 29 unless a scale is above the product of those of input and filter."""
    first, second = arguments["input"], arguments["filter"]
    # The signed type came with level 30, where the rule is gone already.
    is_unsigned = first.type == _C.TENSOR_QUANT8_ASYMM
    product = float32_product(first.scale, second.scale)
    if is_unsigned and np.float32(scale) <= product:
        return max(level, 29)
    return level


def check_bias_scale(lower: LoweringContext) -> None:
    """Check that a quantised bias counts in steps of the products.

    Raises
    ------
    LayerValidationError
        If its scale is not the product of those of input and filter, within 1e-6 of it.
    """
    source, weights = lower["input"].info, lower["filter"].info
    # Beside scales per channel the bias has none of its own.
    if not source.data_type.is_quantized or weights.has_per_axis_quantization:
        return
    product = float32_product(source.scale, weights.scale)
    # As stored: the application may have given more digits than float32 has.
    scale = float(np.float32(lower.arguments["bias"].scale))
    require(
        # The tolerance of NNAPI's kernels.
        abs(product - scale) <= 1e-6 * min(product, scale),
        "the bias has the wrong scale",
        expected=f"{product:g}, the product of the scales of input and filter",
        actual=f"{scale:g}",
    )


def _lower_windows(
    lower: LoweringContext,
    kind: type[Convolution2d] | type[DepthwiseConvolution2d],
    dilation: tuple[int, int] = (1, 1),
) -> Value:
    """The convolution, once its channels are known to fit."""
    require_image(lower)
    require_filter(lower)
    check_bias_scale(lower)
    kernel = lower.shape("filter")[1:3]
    # Padding is measured against what a window spans, gaps of the dilation included.
    extents = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    operation = kind(
        stride(lower),
        dilation,
        window_padding(lower, extents),
        fused_activation(lower),
        data_layout(lower),
    )
    return lower.add(operation, lower["input"], lower["filter"], lower["bias"])


def _channels(lower: LoweringContext) -> int:
    """Number of the input's channels."""
    return lower.shape("input")[data_layout(lower).channel_axis]


def _dilation(lower: LoweringContext) -> tuple[int, int]:
    """The dilation; vertical, horizontal."""
    return lower.integer("dilation_height"), lower.integer("dilation_width")


def _lower_convolution(lower: LoweringContext) -> Value:
    channels = _channels(lower)
    require(
        lower.shape("filter")[3] == channels,
        "the filter's depth is not the input's number of channels",
        expected=f"{channels} at the last dimension",
        actual=lower.shape("filter"),
    )
    return _lower_windows(lower, Convolution2d, _dilation(lower))


def _lower_grouped(lower: LoweringContext) -> Value:
    """GROUPED_CONV_2D; a core convolution sees the groups by the filter's depth."""
    channels, groups = _channels(lower), lower.integer("num_groups")
    require(
        groups >= 1 and lower.shape("filter")[3] * groups == channels,
        "the input's channels are not the filter's depth times the groups",
        expected=f"a filter of depth {channels} / {groups}",
        actual=lower.shape("filter"),
    )
    # NNAPI's operation has no dilation.
    return _lower_windows(lower, Convolution2d)


def _lower_depthwise(lower: LoweringContext) -> Value:
    """DEPTHWISE_CONV_2D; a core convolution sees the multiplier by the filter's channels."""
    channels, multiplier = _channels(lower), lower.integer("depth_multiplier")
    require(
        multiplier >= 1 and channels * multiplier == lower.shape("filter")[3],
        "the filter's channels are not the input's times the multiplier",
        expected=f"{channels} * {multiplier} at the last dimension",
        actual=lower.shape("filter"),
    )
    return _lower_windows(lower, DepthwiseConvolution2d, _dilation(lower))


def _lower_fully_connected(lower: LoweringContext) -> Value:
    require_filter(lower)
    check_bias_scale(lower)
    operation = FullyConnected(fused_activation(lower))
    return lower.add(operation, lower["input"], lower["filter"], lower["bias"])


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.CONV_2D,
        "Convolve an image with filters (o, h, w, i).",
        window_forms(
            (IMAGE, FILTER, BIAS), (*STRIDES, ACTIVATION), (29, (DEFAULT_NCHW,)), (29, DILATIONS)
        ),
        CONVOLUTION_ROWS,
        _lower_convolution,
        check=lambda arguments: _check_convolution(arguments, 0),
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.DEPTHWISE_CONV_2D,
        "Convolve each channel of an image with filters (1, h, w, o) of its own.",
        window_forms(
            (IMAGE, FILTER, BIAS),
            (*STRIDES, _DEPTH_MULTIPLIER, ACTIVATION),
            (29, (DEFAULT_NCHW,)),
            (29, DILATIONS),
        ),
        CONVOLUTION_ROWS,
        _lower_depthwise,
        # The filters' output channels are the last axis here, and the first of the others.
        check=lambda arguments: _check_convolution(arguments, 3),
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.GROUPED_CONV_2D,
        "Convolve groups of channels with filters (o, h, w, i / groups) of their own.",
        window_forms((IMAGE, FILTER, BIAS), (*STRIDES, *_GROUPED), feature_level=29),
        CONVOLUTION_ROWS,
        _lower_grouped,
        check=lambda arguments: check_channel_dim(arguments, 0),
    ),
    OperationDefinition(
        OperationCode.FULLY_CONNECTED,
        "Multiply vectors by weights (units, depth).",
        forms(
            (
                Argument("input", "T", "Split into vectors of the depth.", ranks=(2, 3, 4)),
                Argument("filter", "filter", ranks=(2,)),
                Argument("bias", "bias", BIAS.text, ranks=(1,)),
                ACTIVATION,
            ),
            outputs=(Argument("output", "T"),),
        ),
        _FULLY_CONNECTED_ROWS,
        _lower_fully_connected,
        check=_check_fully_connected,
        allows_zero_sized=True,
    ),
)
