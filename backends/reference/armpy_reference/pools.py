"""Pooling of images and volumes: windows along any number of axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from armpy.core.numerics.rounding import Int64Array
from armpy.ops import Pooling2d, Pooling3d, PoolingAlgorithm
from armpy.ops.operation import Array
from armpy.ops.shapes import PaddingSpec, resolve_padding
from armpy_reference.quantization import activation_range
from armpy_reference.windows import WindowAxis
from armpy_reference.workload import ReferenceWorkload

PoolT = TypeVar("PoolT", Pooling2d, Pooling3d)


_LONG_WINDOW = 1024
"""More elements than that are combined window by window, if there are fewer windows."""


def window_axes(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: PaddingSpec,
    dilation: Sequence[int],
) -> tuple[WindowAxis, ...]:
    """Windows along each spatial axis."""
    axes = []
    for axis, numbers in enumerate(zip(sizes, kernel, stride, dilation, strict=True)):
        size, k, s, d = numbers
        before, after = resolve_padding(padding, size, k, s, d, axis)
        count = (size + before + after - ((k - 1) * d + 1)) // s + 1
        axes.append(WindowAxis(size, before, k, s, d, count))
    return tuple(axes)


def inside(axis: WindowAxis) -> tuple[Int64Array, Int64Array]:
    """Per window, its first element that lies inside the image, and the one after the last."""
    starts = np.arange(axis.count) * axis.stride - axis.before
    first = np.minimum(np.maximum(-(starts // axis.dilation), 0), axis.kernel)
    end = np.minimum((axis.size - 1 - starts) // axis.dilation + 1, axis.kernel)
    return first, np.maximum(end, first)


def meetings(axis: WindowAxis) -> Iterator[tuple[slice, slice]]:
    """Return for each element of the window the windows where it lies inside, and its operands."""
    # Windows may be far larger than the image; most of their elements never meet it then.
    nearest = max(-((axis.stride * (axis.count - 1) - axis.before) // axis.dilation), 0)
    for tap in range(nearest, min((axis.before + axis.size - 1) // axis.dilation + 1, axis.kernel)):
        offset = tap * axis.dilation - axis.before
        first = max(-(offset // axis.stride), 0)
        last = min((axis.size - 1 - offset) // axis.stride + 1, axis.count)
        if first < last:
            begin = first * axis.stride + offset
            end = (last - 1) * axis.stride + offset + 1
            yield slice(first, last), slice(begin, end, axis.stride)


class PoolingWorkload(ReferenceWorkload[PoolT]):
    """Combine the elements of windows, one axis after the other from the last.

    Float means are sums in float32 divided by the number of elements inside the image.
    Quantised means are integer sums, divided with halves away from zero; the zero point needs
    no regard as input and output share it.
    """

    def prepare(self) -> None:
        """Lay the windows over the image; find the clamp."""
        operation, output = self.operation, self.info.outputs[0]
        shape = self.input_infos[0].known_shape
        self._axes = window_axes(
            [shape[axis] for axis in operation.data_layout.spatial_axes],
            operation.pool_size,
            operation.stride,
            operation.padding,
            getattr(operation, "dilation", (1, 1)),
        )
        self._bounds: tuple[float | None, float | None] = operation.activation.bounds
        if output.data_type.is_quantized:
            self._bounds = activation_range(operation.activation, output)

    def pool(self, images: Array, out: Array) -> None:
        """Summarise and clamp; both have the channels last."""
        algorithm = self.operation.algorithm
        if algorithm is PoolingAlgorithm.MAX:
            result = self._combined(images, np.maximum)
        elif images.dtype.kind == "f":
            numbers = images.astype(np.float32, copy=False)
            if algorithm is PoolingAlgorithm.L2:
                numbers = np.square(numbers)
            result = self._combined(numbers, np.add) / self._counts().astype(np.float32)
            if algorithm is PoolingAlgorithm.L2:
                np.sqrt(result, out=result)
        else:
            area = math.prod(self.operation.pool_size)
            numbers = images.astype(np.int32 if area <= 1 << 15 else np.int64)
            result = _rounded_means(self._combined(numbers, np.add), self._counts())
        low, high = self._bounds
        if low is not None or high is not None:
            result = np.clip(result, low, high)
        out[...] = result

    def _combined(self, images: Array, combine: np.ufunc) -> Array:
        """Every window's elements combined, shape (n, ..., c)."""
        for number, axis in reversed(list(enumerate(self._axes, 1))):
            images = _combine_along(images.swapaxes(1, number), axis, combine).swapaxes(1, number)
        return images

    def _counts(self) -> Array:
        """Elements of each window that lie inside the image, shape (..., 1); 1 at least."""
        counts: Array = np.ones((), np.int64)
        for axis in self._axes:
            first, end = inside(axis)
            counts = counts[..., None] * (end - first)
        return np.maximum(counts, 1)[..., None]


def _combine_along(values: Array, axis: WindowAxis, combine: np.ufunc) -> Array:
    shape = (values.shape[0], axis.count, *values.shape[2:])
    result = np.full(shape, neutral(combine, values.dtype), values.dtype)
    first, end = inside(axis)
    num_taps = int(end.max(initial=0) - first.min(initial=axis.kernel))
    if num_taps > max(_LONG_WINDOW, axis.count):
        for window in range(axis.count):
            start = window * axis.stride - axis.before
            begin, stop = (start + int(tap[window]) * axis.dilation for tap in (first, end))
            inner = values[:, begin : stop : axis.dilation]
            if inner.shape[1]:
                result[:, window] = combine.reduce(inner, axis=1)
        return result
    for windows, elements in meetings(axis):
        part = result[:, windows]
        combine(part, values[:, elements], out=part)
    return result


def neutral(combine: np.ufunc, dtype: np.dtype[Any]) -> float:  # Any: of floats or integers
    """Neutral element of the reduction."""
    if combine is np.add:
        return 0
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _rounded_means(sums: Array, counts: Array) -> Array:
    """Integer quotients, rounded half away from zero."""
    quotients = (np.abs(sums) + counts // 2) // counts
    return np.asarray(np.where(sums < 0, -quotients, quotients))
