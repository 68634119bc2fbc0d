"""Images and windows over them, as ONNX writes them: channels first, any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import Int64Array
from armpy.graph import Value
from armpy.ops.shapes import Padding, PaddingSpec
from armpy_onnx.blocks import check_table, reshaped, transposed
from armpy_onnx.node import Node

Pads = tuple[tuple[int, int], ...]
"""The padding before and after each spatial axis."""

_MOST_AXES = 3


def spatial_sizes(node: Node, index: int = 0) -> tuple[int, ...]:
    """Sizes of an image's spatial axes, which are 1 to 3."""
    shape = node.shape(index)
    if not 3 <= len(shape) <= 2 + _MOST_AXES:
        raise node.error(
            f"input {index} has the wrong rank",
            expected=f"a batch and channels with 1 to {_MOST_AXES} spatial axes",
            actual=shape,
        )
    return shape[2:]


def with_two_axes(node: Node, value: Value) -> Value:
    """An image with at least two spatial axes, channels first; a line becomes one row."""
    shape = value.info.known_shape
    return reshaped(node, value, (*shape[:2], 1, *shape[2:])) if len(shape) == 3 else value


def channels_last(node: Node, value: Value) -> Value:
    """An image with its channels at the end, and at least two spatial axes."""
    image = with_two_axes(node, value)
    rank = len(image.info.known_shape)
    return transposed(node, image, (0, *range(2, rank), 1))


def channels_first(node: Node, value: Value, num_axes: int) -> Value:
    """Return the argument of `channels_last`: channels after the batch, `num_axes` spatial axes."""
    rank = len(value.info.known_shape)
    image = transposed(node, value, (0, rank - 1, *range(1, rank - 1)))
    shape = image.info.known_shape
    return reshaped(node, image, (*shape[:2], *shape[rank - num_axes :]))


def lifted(numbers: Sequence[int], fill: int) -> tuple[int, ...]:
    """Numbers per spatial axis for an image that `with_two_axes` made."""
    return (fill, *numbers) if len(numbers) == 1 else tuple(numbers)


def lifted_pads(pads: Pads) -> Pads:
    """Padding for an image that `with_two_axes` made."""
    return ((0, 0), *pads) if len(pads) == 1 else pads


def spec_of_pads(pads: Pads) -> PaddingSpec:
    """Padding for an image that `with_two_axes` made; VALID where there is none, as in .tflite."""
    return lifted_pads(pads) if any(map(any, pads)) else Padding.VALID


@dataclass(frozen=True, slots=True)
class WindowAttributes:
    """Windows over the spatial axes of an image."""

    # Per spatial axis.
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: Pads  # before and after each spatial axis

    @property
    def extents(self) -> tuple[int, ...]:
        """Return how far a window reaches along each axis."""
        pairs = zip(self.kernel, self.dilation, strict=True)
        return tuple((kernel - 1) * dilation + 1 for kernel, dilation in pairs)

    def counts(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along each axis of an image."""
        return tuple(
            (size + sum(pads) - extent) // stride + 1
            for size, pads, extent, stride in zip(
                sizes, self.pads, self.extents, self.stride, strict=True
            )
        )

    def with_pads(self, pads: Sequence[tuple[int, int]]) -> WindowAttributes:
        """The same windows with other padding."""
        return WindowAttributes(self.kernel, self.stride, self.dilation, tuple(pads))

    def rounded_up(self, sizes: Sequence[int]) -> WindowAttributes:
        """Round the end of each axis up so that windows which begin inside are whole.

        Notes
        -----
        What ``ceil_mode`` says: a window that would begin in the padding after the image is
        left out.
        """
        pads = []
        extents = self.extents
        for axis, (before, after) in enumerate(self.pads):
            room = sizes[axis] + before + after - extents[axis]
            count = -(-room // self.stride[axis]) + 1
            if (count - 1) * self.stride[axis] >= sizes[axis] + before:
                count -= 1
            needed = (count - 1) * self.stride[axis] + extents[axis] - sizes[axis] - before
            pads.append((before, max(after, needed)))
        return self.with_pads(pads)


def window_attributes(
    node: Node, sizes: Sequence[int], kernel: Sequence[int] | None = None
) -> WindowAttributes:
    """Kernel, strides, dilations and padding of a node over an image.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of the image's spatial axes.
    kernel : sequence of int, optional
        Kernel of the weights; without them the attribute has to be there.

    Raises
    ------
    LayerValidationError
        If there is not one number per axis, or it is too small.
    """
    rank = len(sizes)
    shape = per_axis(node, "kernel_shape", rank, 1, kernel)
    if kernel is not None and shape != tuple(kernel):
        raise node.error(
            "the attribute 'kernel_shape' is not the weights'",
            expected=str(tuple(kernel)),
            actual=shape,
        )
    stride = per_axis(node, "strides", rank, 1, (1,) * rank)
    dilation = per_axis(node, "dilations", rank, 1, (1,) * rank)
    windows = WindowAttributes(shape, stride, dilation, ((0, 0),) * rank)
    return windows.with_pads(_pads(node, sizes, windows))


def window_places(
    node: Node, windows: WindowAttributes, sizes: Sequence[int]
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Places of windows' elements in a flat image, and which lie inside of it.

    Returns
    -------
    ndarray, int64, shape (counts..., kernel...)
        0 outside of the image.
    ndarray, bool, of that shape
    """
    counts, rank = windows.counts(sizes), len(sizes)
    check_table(node, (*counts, *windows.kernel))
    places, inside = np.zeros((1,) * 2 * rank, np.int64), np.ones((1,) * 2 * rank, np.bool_)
    for axis, size in enumerate(sizes):
        starts = np.arange(counts[axis]) * windows.stride[axis] - windows.pads[axis][0]
        along = np.add.outer(starts, np.arange(windows.kernel[axis]) * windows.dilation[axis])
        shape = [1] * 2 * rank
        shape[axis], shape[rank + axis] = along.shape
        along = along.reshape(shape)
        places = places * size + along
        inside = inside & (along >= 0) & (along < size)
    return np.where(inside, places, 0), inside


def per_axis(
    node: Node, name: str, length: int, least: int, default: Sequence[int] | None = None
) -> tuple[int, ...]:
    """An attribute of several integers, all of a least size.

    Raises
    ------
    LayerValidationError
        If it has another length, or one is too small.
    """
    numbers = node.integers(name, default)
    if len(numbers) != length or any(number < least for number in numbers):
        raise node.error(
            f"the attribute '{name}' has the wrong length, or too small a number",
            expected=f"{length} numbers of {least} or more",
            actual=numbers,
        )
    return numbers


def explicit_pads(node: Node, rank: int) -> Pads:
    """The attribute ``pads``: all that is before, then all that is after."""
    pads = per_axis(node, "pads", 2 * rank, 0, (0,) * (2 * rank))
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def auto_pad(node: Node) -> str:
    """The attribute ``auto_pad``; older ones than ``NOTSET`` do not differ from the default."""
    mode = node.text("auto_pad", "NOTSET") or "NOTSET"
    modes = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if mode not in modes:
        raise node.error(
            "the attribute 'auto_pad' has an unknown value",
            expected=", ".join(modes),
            actual=repr(mode),
        )
    return mode


def split_pads(total: int, *, more_before: bool) -> tuple[int, int]:
    """A number of elements as halves; the odd one is before or after."""
    less = total // 2
    return (total - less, less) if more_before else (less, total - less)


def _pads(node: Node, sizes: Sequence[int], windows: WindowAttributes) -> Pads:
    """Padding from ``pads`` or ``auto_pad``."""
    mode = auto_pad(node)
    if mode == "NOTSET":
        return explicit_pads(node, len(sizes))
    if mode == "VALID":
        return windows.pads
    pads = []
    for size, stride, extent in zip(sizes, windows.stride, windows.extents, strict=True):
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        pads.append(split_pads(total, more_before=mode == "SAME_LOWER"))
    return tuple(pads)
