"""Filter windows over an image, and how their elements are brought together.

References
----------
Chellapilla, Puri, Simard, "High Performance Convolutional Neural Networks for Document
Processing", 2006 (a convolution as one matrix product of patches).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.ops.shapes import PaddingSpec, resolve_padding
from armpy.tensor import TensorInfo
from armpy.types import DataLayout

Array = npt.NDArray[Any]  # Any: integers on the way in, floats of either size inside


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """Window positions along one spatial axis."""

    size: int
    before: int
    """`size` and `before`: elements of the input, padding elements in front of them."""
    kernel: int
    stride: int
    dilation: int
    count: int  # number of window positions

    def extent(self, count: int) -> int:
        """Elements that `count` neighbouring windows reach over, padding included."""
        return (count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1


@dataclass(frozen=True, slots=True)
class Windows:
    """Window positions over an image, row by row."""

    rows: WindowAxis
    columns: WindowAxis

    @classmethod
    def over(
        cls,
        image: TensorInfo,
        layout: DataLayout,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: PaddingSpec,
        dilation: Sequence[int] = (1, 1),
    ) -> Windows:
        """Windows over the height and width of an image."""
        sizes = channels_last_shape(image.known_shape, layout)[1:3]
        axes = []
        for axis in range(2):
            size, k, s, d = sizes[axis], kernel[axis], stride[axis], dilation[axis]
            before, after = resolve_padding(padding, size, k, s, d, axis)
            count = (size + before + after - ((k - 1) * d + 1)) // s + 1
            axes.append(WindowAxis(size, before, k, s, d, count))
        return cls(*axes)

    @property
    def are_single_elements(self) -> bool:
        """Return whether window number i is just element number i of the image."""
        return all(
            axis.kernel == axis.stride == 1 and axis.before == 0 and axis.count == axis.size
            for axis in (self.rows, self.columns)
        )


def channels_last_shape(shape: Sequence[int], layout: DataLayout) -> tuple[int, int, int, int]:
    """Shape of an image in the order (n, h, w, c)."""
    n, h, w, c = shape if layout.channel_axis == 3 else (shape[i] for i in (0, 2, 3, 1))
    return n, h, w, c


def run_channels_last(
    run: Callable[[Array, Array], None], image: Array, out: Array, layout: DataLayout
) -> None:
    """Call ``run(image, out)`` with both as C-contiguous arrays of shape (n, h, w, c)."""
    if layout.channel_axis == 3:
        run(image, out)
        return
    result = np.empty(channels_last_shape(out.shape, layout), out.dtype)
    run(np.ascontiguousarray(image.transpose(0, 2, 3, 1)), result)
    out[...] = result.transpose(0, 3, 1, 2)


class PaddedRows:
    """Working memory that holds some rows of an image with their padding.

    Parameters
    ----------
    max_windows : int
        Rows of windows that one `load` serves at most.
    channels : int
        Channels of the windows; a multiple of the image's.
    dtype : dtype
    is_split : bool
        Whether columns with the same remainder by the stride are kept together, so that the
        elements that neighbouring windows read at one position are neighbours too.

    Attributes
    ----------
    slab : ndarray, shape (splits, rows, columns, channels)
    """

    def __init__(
        self,
        windows: Windows,
        max_windows: int,
        channels: int,
        dtype: npt.DTypeLike,
        pad_value: float,
        is_split: bool = False,
    ) -> None:
        self.windows = windows
        self.pad_value = pad_value
        columns = windows.columns
        width = columns.extent(columns.count)
        self.splits = min(columns.stride, width) if is_split else 1
        height = windows.rows.extent(max_windows)
        self.slab: Array = np.empty(
            (self.splits, height, -(-width // self.splits), channels), dtype
        )

    def load(self, image: Array, first: int, count: int) -> None:
        """Bring in what windows `first` to `first + count` (down the image) reach over.

        Parameters
        ----------
        image : ndarray, shape (h, w, c)
            Each channel comes `channels / c` times in succession.
        """
        rows = self.windows.rows
        start = first * rows.stride - rows.before
        slab = self.slab[:, : rows.extent(count)]
        height = slab.shape[1]
        top = min(max(-start, 0), height)
        bottom = max(min(rows.size - start, height), top)
        slab[:, :top] = self.pad_value
        slab[:, bottom:] = self.pad_value
        for split in range(self.splits):
            self._load_columns(slab[split, top:bottom], image[start + top : start + bottom], split)

    def _load_columns(self, slab: Array, image: Array, split: int) -> None:
        """Fill rows that lie inside the image with every n-th column and the padding beside."""
        before, width = self.windows.columns.before, slab.shape[1]
        left = min(max(-(-(before - split) // self.splits), 0), width)
        right = min(max(-(-(image.shape[1] + before - split) // self.splits), left), width)
        begin = split + left * self.splits - before
        slab[:, :left] = self.pad_value
        slab[:, right:] = self.pad_value
        inside = image[:, begin : begin + (right - left) * self.splits : self.splits]
        repeats = slab.shape[2] // max(image.shape[2], 1)
        if repeats == 1:
            slab[:, left:right] = inside
        else:
            np.copyto(slab[:, left:right].reshape(*inside.shape, repeats), inside[..., None])

    def patches(self, count: int) -> Array:
        """View of the windows' elements, shape (count, columns, kernel h, kernel w, channels).

        For unsplit columns only.
        """
        rows, columns = self.windows.rows, self.windows.columns
        _, down, right, channel = self.slab.strides
        return np.lib.stride_tricks.as_strided(
            self.slab,
            (count, columns.count, rows.kernel, columns.kernel, self.slab.shape[3]),
            (
                down * rows.stride,
                right * columns.stride,
                down * rows.dilation,
                right * columns.dilation,
                channel,
            ),
            writeable=False,
        )

    def tap(self, row: int, column: int, count: int) -> Array:
        """View of one element of every window, shape (count, columns * channels).

        For split columns only.

        Parameters
        ----------
        row, column
            Position of an element of the kernel.
        """
        rows, columns = self.windows.rows, self.windows.columns
        channels = self.slab.shape[3]
        top = row * rows.dilation
        left, split = divmod(column * columns.dilation, self.splits)
        lines = self.slab[split].reshape(self.slab.shape[1], -1)
        elements: Array = lines[
            top : top + (count - 1) * rows.stride + 1 : rows.stride,
            left * channels : (left + columns.count) * channels,
        ]
        return elements
