"""CpuRef's Pooling2d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from armpy.ops import Pooling2d, PoolingAlgorithm
from armpy.ops.operation import Array
from armpy_reference.quantization import activation_range
from armpy_reference.weighted import operand
from armpy_reference.windows import WindowAxis, Windows, run_channels_last
from armpy_reference.workload import ReferenceWorkload


class Pooling2dWorkload(ReferenceWorkload[Pooling2d]):
    """Combine the windows' columns, then their rows.

    Notes
    -----
    Float means are sums in float32 divided by the number of elements inside the image.
    Quantised means are integer sums, divided with halves away from zero; the zero point needs
    no regard as input and output share it.
    """

    def prepare(self) -> None:
        """Lay the windows over the image; find the clamp."""
        operation, output = self.operation, self.info.outputs[0]
        self._windows = Windows.over(
            operand(self.info, 0),
            operation.data_layout,
            operation.pool_size,
            operation.stride,
            operation.padding,
        )
        self._bounds: tuple[float | None, float | None] = operation.activation.bounds
        if output.data_type.is_quantized:
            self._bounds = activation_range(operation.activation, output)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Summarise all images at once."""
        run_channels_last(self._pool, inputs[0], outputs[0], self.operation.data_layout)

    def _pool(self, images: Array, out: Array) -> None:
        """Summarise and clamp."""
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
        """Every window's elements combined, shape (n, oh, ow, c)."""
        columns = _combine_along(images.swapaxes(1, 2), self._windows.columns, combine)
        return _combine_along(columns.swapaxes(1, 2), self._windows.rows, combine)

    def _counts(self) -> Array:
        """Elements of each window that lie inside the image, shape (oh, ow, 1)."""
        down, right = _counts(self._windows.rows), _counts(self._windows.columns)
        return (down[:, None] * right)[..., None]


def _combine_along(values: Array, axis: WindowAxis, combine: np.ufunc) -> Array:
    """Windows along axis 1 of an array of rank 4, each combined into one."""
    shape = (values.shape[0], axis.count, *values.shape[2:])
    result = np.full(shape, _neutral(combine, values.dtype), values.dtype)
    # Windows may be far larger than the image; most of their elements never meet it then.
    nearest = max(axis.before - (axis.count - 1) * axis.stride, 0)
    for tap in range(nearest, min(axis.before + axis.size, axis.kernel)):
        offset = tap - axis.before
        first = max(-(offset // axis.stride), 0)
        last = min((axis.size - 1 - offset) // axis.stride + 1, axis.count)
        if first < last:
            begin = first * axis.stride + offset
            end = (last - 1) * axis.stride + offset + 1
            part = result[:, first:last]
            combine(part, values[:, begin : end : axis.stride], out=part)
    return result


def _neutral(combine: np.ufunc, dtype: np.dtype[Any]) -> float:  # Any: of floats or integers
    """Neutral element of the reduction."""
    if combine is np.add:
        return 0
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _counts(axis: WindowAxis) -> Array:
    """Elements of each window along one axis that lie inside the image."""
    first = np.arange(axis.count) * axis.stride - axis.before
    return np.minimum(first + axis.kernel, axis.size) - np.maximum(first, 0)


def _rounded_means(sums: Array, counts: Array) -> Array:
    """Integer quotients, rounded half away from zero."""
    quotients = (np.abs(sums) + counts // 2) // counts
    return np.asarray(np.where(sums < 0, -quotients, quotients))
