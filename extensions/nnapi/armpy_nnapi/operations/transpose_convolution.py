"""TRANSPOSE_CONV_2D."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.shapes import Padding, image_shape
from armpy.ops.transpose_convolution import TransposeConvolution2d
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout, fused_activation, implicit_padding, vector
from armpy_nnapi.operations.weighted import (
    BIAS,
    CONVOLUTION_ROWS,
    FILTER,
    check_bias_scale,
    check_channel_dim,
)
from armpy_nnapi.operations.windows import (
    ACTIVATION,
    EXPLICIT_PADDING,
    IMAGE,
    IMPLICIT_PADDING,
    NCHW,
    STRIDES,
    explicit_padding,
    require_filter,
    require_image,
    stride,
)

_TENSORS = (IMAGE, FILTER, BIAS)
_SCALARS = (*STRIDES, ACTIVATION, NCHW)
_OUTPUT_SHAPE = Argument(
    "output_shape",
    OperandCode.TENSOR_INT32,
    "Four sizes; the spatial ones decide on the padding.",
    decisive=True,
)
_OUTPUT = Argument("output", "T")


def _lower(lower: LoweringContext) -> Value:
    """A transpose convolution to the size that the padding leaves."""
    require_image(lower)
    require_filter(lower)
    check_bias_scale(lower)
    layout, steps, kernel = data_layout(lower), stride(lower), lower.shape("filter")[1:3]
    require(min(steps) >= 1, "the stride is too small", expected="1 or more", actual=steps)
    shape = lower.shape("input")
    padding = (
        explicit_padding(lower)
        if "padding_left" in lower
        else _implicit_padding(lower, kernel, steps)
    )
    sizes = tuple(
        # The windows' extent less the padding: the inverse of a convolution's output size.
        (shape[axis] - 1) * step + k - sum(pair)
        for axis, step, k, pair in zip(layout.spatial_axes, steps, kernel, padding, strict=True)
    )
    require(
        min(sizes) >= 1,
        "nothing is left of the output",
        expected="spatial sizes of 1 or more",
        actual=sizes,
    )
    # Padding below 0 adds elements that no window reaches; the output's size says it as well.
    operation = TransposeConvolution2d(
        steps,
        tuple((before, max(after, 0)) for before, after in padding),
        fused_activation(lower),
        layout,
        image_shape(layout, shape[0], sizes, lower.shape("filter")[0]),  # type: ignore[arg-type]  # all known
    )
    return lower.add(operation, lower["input"], lower["filter"], lower["bias"])


def _implicit_padding(
    lower: LoweringContext, kernel: tuple[int, ...], steps: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """Padding per spatial axis that makes the output as large as it is asked to be."""
    padding, sizes = implicit_padding(lower), vector(lower, "output_shape", 4)
    return tuple(
        _padding_for(padding, sizes[axis], k, step)
        for axis, k, step in zip(data_layout(lower).spatial_axes, kernel, steps, strict=True)
    )


def _padding_for(padding: Padding, size: int, kernel: int, step: int) -> tuple[int, int]:
    """Padding along one axis from the output's size; its end is below 0 if windows end earlier."""
    if padding is Padding.VALID:
        return 0, 0
    total = (-(-size // step) - 1) * step + kernel - size
    # The odd element goes to the end, as TFLite's padding puts it.
    before = max(total, 0) // 2
    return before, total - before


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.TRANSPOSE_CONV_2D,
        "Spread each element of an image over a window, weighted by filters (o, h, w, i).",
        (
            *forms(
                (*_TENSORS, _OUTPUT_SHAPE, *IMPLICIT_PADDING, *_SCALARS),
                outputs=(_OUTPUT,),
                feature_level=29,
            ),
            *forms((*_TENSORS, *EXPLICIT_PADDING, *_SCALARS), outputs=(_OUTPUT,), feature_level=29),
        ),
        CONVOLUTION_ROWS,
        _lower,
        check=lambda arguments: check_channel_dim(arguments, 0),
        allows_zero_sized=True,
    ),
)
