"""Operators over images: transposed convolution with a bias, pooling with positions, warping."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops import (
    ArgMinMax,
    ArgMinMaxFunction,
    Cast,
    Comparison,
    ComparisonOperation,
    FusedActivation,
    Gather,
    Pad,
    Pooling2d,
    PoolingAlgorithm,
    Reshape,
    Select,
    Stack,
    StridedSlice,
    Transpose,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import require
from armpy.ops.shapes import Padding
from armpy.plugins.hooks import OperatorParts
from armpy.plugins.hooks.flatbuffers import read_options
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_mediapipe.arithmetic import Arithmetic, number, option

_SAME, _VALID = 1, 2
_MOST_TAPS = 256
"""Elements of a pooling window: each becomes a layer, so that a file cannot ask for millions."""


def transposed_convolution(parts: OperatorParts) -> Value:
    """Convert ``Convolution2DTransposeBias``: TRANSPOSE_CONV whose output size follows.

    References
    ----------
    MediaPipe ``transpose_conv_bias.cc``; options are TFLite's ``TfLiteTransposeConvParams``.
    """
    padding, width, height = _integers(parts, 3)
    require(min(width, height) >= 1, "a stride is too small", expected="1 or more", actual=width)
    weights = parts.shape(1)
    require(len(weights) == 4 and len(parts.shape(0)) == 4, "images have four dimensions")
    sizes = zip(weights[1:3], parts.shape(0)[1:3], (height, width), strict=True)
    cropped = [
        max(0, window - (size - 1) % stride - 1) if _is_same(padding) else 0
        for window, size, stride in sizes
    ]
    top_left = [total // 2 for total in cropped]
    pads = tuple((begin, total - begin) for begin, total in zip(top_left, cropped, strict=True))
    operation = TransposeConvolution2d((height, width), pads)
    return parts.layer(operation, parts.value(0), parts.value(1), parts.value(2))


def pooling_with_positions(parts: OperatorParts) -> Sequence[Value]:
    """Convert ``MaxPoolingWithArgmax2D``: maxima, and the place of each in its window.

    A place is ``row * window width + column + 0.1`` in float32; of equal elements the first one
    counts.

    References
    ----------
    MediaPipe ``max_pool_argmax.cc``; options are TFLite's ``TfLitePoolParams``.
    """
    padding, stride, window, activation = _pooling(parts)
    shape = parts.shape(0)
    require(len(shape) == 4, "an image has four dimensions", actual=str(shape))
    pads = [(0, 0)] * 4
    for axis, (size, step, length) in enumerate(
        zip(shape[1:3], stride, window, strict=True), start=1
    ):
        outputs = -(-size // step) if padding is Padding.SAME else (size - length) // step + 1
        require(outputs > 0, "the window is larger than the image", actual=str(shape))
        beyond = max(0, (outputs - 1) * step + length - size)
        pads[axis] = beyond // 2, beyond - beyond // 2
    padded = parts.layer(Pad(tuple(pads), -np.inf), parts.value(0))
    sizes = [size + sum(pad) for size, pad in zip(shape, pads, strict=True)]
    taps = []
    for place in range(window[0] * window[1]):
        row, column = divmod(place, window[1])
        begin = (0, row, column, 0)
        cut = (0, window[0] - 1 - row, window[1] - 1 - column, 0)
        end = tuple(size - less for size, less in zip(sizes, cut, strict=True))
        taps.append(parts.layer(StridedSlice(begin, end, (1, *stride, 1)), padded))
    indices = parts.layer(ArgMinMax(ArgMinMaxFunction.MAX, 0), parts.layer(Stack(), *taps))
    places = parts.layer(Cast(), indices, output=TensorInfo(None, DataType.FLOAT32))
    pooling = Pooling2d(PoolingAlgorithm.MAX, window, stride, padding, activation)
    arithmetic = Arithmetic(parts)
    return parts.layer(pooling, parts.value(0)), arithmetic.add(places, number(parts, 0.1))


def unpooling(parts: OperatorParts) -> Value:
    """Convert ``MaxUnpooling2D``: each element at its place in its window, zeros elsewhere.

    Windows must lie side by side. An index that is not a place of the window writes nothing.

    References
    ----------
    MediaPipe ``max_unpooling.cc``; options are TFLite's ``TfLitePoolParams``.
    """
    _, stride, window, _ = _pooling(parts)
    require(
        stride == window, "windows overlap or leave gaps", expected=str(window), actual=str(stride)
    )
    shape = parts.shape(0)
    require(len(shape) == 4 and shape == parts.shape(1), "values and positions differ in shape")
    batch, height, width, channels = shape
    places = np.arange(window[0] * window[1], dtype=np.int32).reshape(-1, 1)
    index = parts.layer(Cast(), parts.value(1), output=TensorInfo(None, DataType.SIGNED32))
    spread = Reshape((batch, height, width, 1, channels))
    is_here = parts.layer(
        Comparison(ComparisonOperation.EQUAL), parts.layer(spread, index), parts.constant(places)
    )
    values = parts.layer(spread, parts.value(0))
    written = parts.layer(Select(), is_here, values, number(parts, 0.0))
    windows = parts.layer(Reshape((batch, height, width, *window, channels)), written)
    rows = parts.layer(Transpose((0, 1, 3, 2, 4, 5)), windows)
    target = (batch, height * window[0], width * window[1], channels)
    return parts.layer(Reshape(target), rows)


def bilinear_transform(parts: OperatorParts) -> Value:
    """Convert ``TransformTensorBilinear``: an image sampled where a matrix leads its pixels.

    Pixels are transformed by their centres (version 2). One that lies outside of the
    image is 0.

    References
    ----------
    MediaPipe ``transform_tensor_bilinear.cc``.
    """
    options = read_options(parts.options)
    out_height, out_width = (option(options, f"output_{side}") for side in ("height", "width"))
    shape = parts.shape(0)
    require(len(shape) == 4 and shape[0] == 1, "the input is not one image", actual=str(shape))
    _, height, width, channels = shape
    require(min(height, width) > 0, "the image is empty", actual=str(shape))
    rows, columns = np.indices((out_height, out_width), np.float32).reshape(2, -1, 1)
    compute = Arithmetic(parts)
    matrix = compute.matrix(parts.value(1))
    pixel = parts.constant(columns), parts.constant(rows)
    x, y = (_transformed(compute, matrix[row], pixel) for row in (0, 1))
    is_inside = compute.all(
        *(compute.at_least(coordinate, number(parts, 0.0)) for coordinate in (x, y)),
        compute.at_least(number(parts, width - 1), x),
        compute.at_least(number(parts, height - 1), y),
    )
    table = parts.layer(Reshape((height * width, channels)), parts.value(0))
    left, upper = (compute.apply(UnaryOperation.FLOOR, coordinate) for coordinate in (x, y))
    right_share, lower_share = compute.subtract(x, left), compute.subtract(y, upper)

    def read(below: int, right: int) -> Value:
        row = compute.clipped(compute.add(upper, number(parts, below)), height - 1)
        column = compute.clipped(compute.add(left, number(parts, right)), width - 1)
        place = [
            parts.layer(Cast(), index, output=TensorInfo(None, DataType.SIGNED32))
            for index in (row, column)
        ]
        step = parts.constant(np.array(width, np.int32))
        index = compute.add(compute.multiply(place[0], step), place[1])
        return parts.layer(Gather(), table, parts.layer(Reshape((-1,)), index))

    upper_row = compute.mixed(read(0, 0), read(0, 1), right_share)
    lower_row = compute.mixed(read(1, 0), read(1, 1), right_share)
    sampled = compute.mixed(upper_row, lower_row, lower_share)
    shown = parts.layer(Select(), is_inside, sampled, number(parts, 0.0))
    return parts.layer(Reshape((1, out_height, out_width, channels)), shown)


def _transformed(compute: Arithmetic, row: Sequence[Value], pixel: tuple[Value, Value]) -> Value:
    """One coordinate of pixels, whose centres are at halves, as a row of the matrix gives it."""
    half = number(compute.parts, 0.5)
    shift = compute.add(compute.multiply(row[0], half), compute.multiply(row[1], half))
    shift = compute.add(row[3], compute.subtract(shift, half))
    turned = [compute.multiply(row[axis], pixel[axis]) for axis in (0, 1)]
    return compute.add(compute.add(*turned), shift)


def _pooling(
    parts: OperatorParts,
) -> tuple[Padding, tuple[int, int], tuple[int, int], FusedActivation]:
    """Padding, stride, window and activation of a pooling operator."""
    padding, *sizes, activation = _integers(parts, 6)
    require(min(sizes) >= 1, "a stride or window is too small", expected="1 or more", actual=sizes)
    step_width, step_height, width, height = sizes
    require(
        width * height <= _MOST_TAPS,
        "the window is too large",
        expected=f"at most {_MOST_TAPS} elements",
        actual=f"{height} x {width}",
    )
    known = [activation.value for activation in FusedActivation]
    require(activation in known, "the activation is not known", actual=activation)
    kind = Padding.SAME if _is_same(padding) else Padding.VALID
    return kind, (step_height, step_width), (height, width), FusedActivation(activation)


def _is_same(padding: int) -> bool:
    """Return whether a padding of TFLite's is SAME.

    Raises LayerValidationError if it is neither SAME nor VALID.
    """
    is_known = padding in (_SAME, _VALID)
    require(is_known, "the padding is not known", expected="1 or 2", actual=padding)
    return padding == _SAME


def _integers(parts: OperatorParts, count: int) -> tuple[int, ...]:
    """The first integers of options that are a C structure."""
    if len(parts.options) < 4 * count:
        raise ParserError(
            "the custom options are too short",
            expected=f"{4 * count} bytes at least",
            actual=f"{len(parts.options)} bytes",
        )
    return struct.unpack_from(f"<{count}i", parts.options)
