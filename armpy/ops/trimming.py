"""Takes off windows what never meets the image: there is only padding in it, whatever is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.core.dataclass import dataclass
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.operation import Operation
from armpy.ops.pooling import Pooling2d
from armpy.ops.shapes import resolve_padding
from armpy.tensor import TensorInfo

Slices = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """The windows along one spatial axis."""

    size: int
    before: int
    after: int
    """`size`, `before` and `after`: elements of the image, and padding elements beside them."""
    kernel: int
    stride: int
    dilation: int
    first: int = 0
    """Position in the whole kernel of the first element."""

    @property
    def room(self) -> int:
        """Return how far the first window could be moved."""
        return self.size + self.before + self.after - ((self.kernel - 1) * self.dilation + 1)

    @property
    def count(self) -> int:
        """Number of windows."""
        return self.room // self.stride + 1

    def trimmed(self) -> _Axis:
        """The same windows without elements, and padding, that make no difference."""
        # Windows lie within most images: that is all to ask of a size that is traced.
        if self.size < 1 or self.size > (self.kernel - 1) * self.dilation + self.stride:
            return self
        last_window = (self.count - 1) * self.stride - self.before
        first = max(0, -(last_window // self.dilation))
        end = min(self.kernel, (self.before + self.size - 1) // self.dilation + 1)
        if first >= end:  # nothing meets the image
            return self
        kernel = end - first
        dilation = self.dilation if kernel > 1 else 1
        before = self.before - first * self.dilation
        reach = (self.count - 1) * self.stride + (kernel - 1) * dilation + 1
        after = max(0, reach - before - self.size)
        stride = self.stride
        if self.count == 1:
            stride = max(1, self.size + before + after - reach + 1)
        smaller = _Axis(self.size, before, after, kernel, stride, dilation, first)
        return smaller if before >= 0 and smaller.count == self.count else self


def trimmed(
    operation: Operation, inputs: Sequence[TensorInfo | None]
) -> tuple[Operation, Mapping[int, Slices]]:
    """An operation whose windows are as small as possible.

    Parameters
    ----------
    inputs
        Fully shaped.

    Returns
    -------
    operation : Operation
        The same object if there is nothing to take off.
    slices : mapping of int to tuple of slice
        Remaining part of each trimmed input, by its index.

    Notes
    -----
    With SAME padding a window may be larger than its image, or have its elements so far apart
    that most meet padding only. What a backend does for each element of a window, and the
    padded image, are bounded by the image's size and the number of windows then.
    """
    if isinstance(operation, Pooling2d):
        axes = _axes(operation, inputs, operation.pool_size, (1, 1))
    elif isinstance(operation, (Convolution2d, DepthwiseConvolution2d)):
        weights = inputs[1]
        assert weights is not None  # it cannot be left out
        axes = _axes(operation, inputs, weights.known_shape[1:3], operation.dilation)
    else:
        return operation, {}
    smaller = [axis.trimmed() for axis in axes]
    if all(new.kernel == old.kernel for new, old in zip(smaller, axes, strict=True)):
        return operation, {}
    padding = tuple((axis.before, axis.after) for axis in smaller)
    stride = smaller[0].stride, smaller[1].stride
    if isinstance(operation, Pooling2d):
        size = smaller[0].kernel, smaller[1].kernel
        if any(max(pair) >= kernel for pair, kernel in zip(padding, size, strict=True)):
            return operation, {}
        return replace(operation, pool_size=size, stride=stride, padding=padding), {}
    dilation = smaller[0].dilation, smaller[1].dilation
    inside = tuple(slice(axis.first, axis.first + axis.kernel) for axis in smaller)
    changed = replace(operation, stride=stride, padding=padding, dilation=dilation)
    return changed, {1: (slice(None), *inside)}


def _axes(
    operation: Pooling2d | Convolution2d | DepthwiseConvolution2d,
    inputs: Sequence[TensorInfo | None],
    kernel: Sequence[int],
    dilation: Sequence[int],
) -> list[_Axis]:
    """The windows of an operation along both axes."""
    image = inputs[0]
    assert image is not None  # it cannot be left out
    axes = []
    for index, axis in enumerate(operation.data_layout.spatial_axes):
        numbers = image.known_shape[axis], kernel[index], operation.stride[index], dilation[index]
        before, after = resolve_padding(operation.padding, *numbers, index)
        size, taps, stride, step = numbers
        axes.append(_Axis(size, before, after, taps, stride, step))
    return axes
