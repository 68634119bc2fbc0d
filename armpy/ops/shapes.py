"""Shape arithmetic that several operation definitions share."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TypeAlias

from armpy.errors import LayerValidationError
from armpy.ops.operation import require
from armpy.tensor import Dimension, Shape, TensorInfo, format_shape
from armpy.types import DataLayout


class Padding(enum.Enum):
    """Padding that follows from the input's size.

    SAME gives an output of ``ceil(input / stride)`` with the odd element at the end;
    VALID adds nothing.

    References
    ----------
    NNAPI PaddingCode; TFLite ``Padding``.
    """

    SAME = 1
    VALID = 2


MAX_STEP = 2**31 - 1
"""Largest stride, dilation or position: TFLite's and NNAPI's are int32.

Backends multiply them by sizes and bytes, which would not fit into int64 otherwise.
"""

PaddingSpec: TypeAlias = Padding | tuple[tuple[int, int], ...]
"""A `Padding`, or explicit (before, after) pairs per spatial axis, outermost first."""


def resolve_padding(
    padding: PaddingSpec, size: int, kernel: int, stride: int, dilation: int, axis: int
) -> tuple[int, int]:
    """Elements added before and after one spatial axis, which is number `axis` from outside."""
    if padding is Padding.VALID:
        return 0, 0
    if padding is Padding.SAME:
        extent = (kernel - 1) * dilation + 1
        out = -(-size // stride)
        total = max((out - 1) * stride + extent - size, 0)
        return total // 2, total - total // 2
    before, after = padding[axis]
    return before, after


def window_output(
    padding: PaddingSpec, size: Dimension, kernel: int, stride: int, dilation: int, axis: int
) -> Dimension:
    """Number of window positions along one spatial axis; None if the size is not known.

    `LayerValidationError` if stride, kernel or dilation is below 1, stride or dilation is above
    `MAX_STEP`, or the window does not fit.
    """
    check_step("stride", stride)
    check_step("dilation", dilation)
    require(kernel >= 1, "the kernel size is too small", expected="1 or more", actual=kernel)
    if size is None:
        return None
    before, after = resolve_padding(padding, size, kernel, stride, dilation, axis)
    room = size + before + after - ((kernel - 1) * dilation + 1)
    require(
        room >= 0,
        "the window is larger than the padded input",
        expected=f"{size - room} or more elements of the input along spatial axis {axis}",
        actual=size,
    )
    return room // stride + 1


def check_step(what: str, step: int) -> None:
    """Check that a stride or dilation is between 1 and `MAX_STEP`."""
    require(step >= 1, f"the {what} is too small", expected="1 or more", actual=step)
    require(
        step <= MAX_STEP,
        f"the {what} is too large",
        expected=f"at most {MAX_STEP}",
        actual=step,
        fix=f"Give a smaller {what}",
    )


def padded_bytes(
    image: TensorInfo,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: PaddingSpec,
    layout: DataLayout,
) -> int:
    """Bytes of one image with its padding, as float32 at least; 0 where there is none."""
    shape = image.known_shape
    total, is_padded = shape[layout.channel_axis], False
    for index, axis in enumerate(layout.spatial_axes):
        before, after = resolve_padding(
            padding, shape[axis], kernel[index], stride[index], dilation[index], index
        )
        around = before + after
        is_padded = is_padded or around > 0
        total *= shape[axis] + around
    return total * max(4, image.data_type.size_bytes) if is_padded and 0 not in shape else 0


def check_padding(padding: PaddingSpec, num_axes: int) -> None:
    """Check that explicit padding has a pair of sizes >= 0 per spatial axis."""
    if isinstance(padding, Padding):
        return
    require(
        len(padding) == num_axes and all(len(pair) == 2 for pair in padding),
        "the padding does not have one pair per spatial axis",
        expected=f"{num_axes} pairs of numbers >= 0",
        actual=str(padding),
    )
    require(
        all(n >= 0 for pair in padding for n in pair),
        "the padding is negative",
        expected="numbers >= 0",
        actual=str(padding),
    )


def spatial(shape: Shape, layout: DataLayout) -> tuple[Dimension, ...]:
    """Dimensions of the spatial axes of an image or volume, outermost first."""
    return tuple(shape[axis] for axis in layout.spatial_axes)


def image_shape(
    layout: DataLayout, batch: Dimension, sizes: Sequence[Dimension], channels: Dimension
) -> Shape:
    """Shape of an image or volume in the given layout."""
    return (batch, channels, *sizes) if layout.channel_axis == 1 else (batch, *sizes, channels)


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the front; `LayerValidationError` if it does not exist."""
    require(
        -rank <= axis < rank,
        "the axis is out of range",
        expected=f"-{rank} to {rank - 1}",
        actual=axis,
    )
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted, each once."""
    return tuple(sorted({normalize_axis(axis, rank) for axis in axes}))


def distinct_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted; each must exist and be given once."""
    distinct = normalize_axes(axes, rank)
    require(
        len(distinct) == len(axes),
        "an axis is repeated",
        expected="each axis once; negative ones count from the last",
        actual=str(tuple(axes)),
        fix="Remove the repeated axis",
    )
    return distinct


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """Shape that several shapes broadcast to under NumPy's rules.

    An unknown dimension stays unknown unless another operand's is above 1. Known dimensions that
    differ, neither being 1, raise `LayerValidationError`.
    """
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(len(shape) for shape in known)
    result: list[Dimension] = []
    for axis in range(-rank, 0):
        dims = [shape[axis] for shape in known if len(shape) >= -axis]
        sizes = [dim for dim in dims if dim is not None and dim != 1]
        if any(size != sizes[0] for size in sizes):
            raise LayerValidationError(
                "the shapes do not broadcast",
                expected="dimensions that are equal or 1, counted from the last axis",
                actual=" and ".join(format_shape(shape) for shape in known),
                fix="Change the shape of one input so that they agree",
            )
        if sizes:
            result.append(sizes[0])
        else:
            result.append(None if None in dims else 1)
    return tuple(result)


def product(dims: Sequence[Dimension]) -> Dimension:
    """Product of dimensions; None if one is not known."""
    return None if None in dims else math.prod(d for d in dims if d is not None)
