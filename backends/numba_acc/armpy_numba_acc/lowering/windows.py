"""Windows over an image, and where the kernels find their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import current
from armpy.ops.shapes import PaddingSpec, resolve_padding
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.depthwise import block_starts
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter

Slots = Sequence[tuple[int, int]] | npt.NDArray[np.int64]
"""Rows and columns of the input relative to a tile's first pixel."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of an image in NHWC."""

    shape: tuple[int, ...]  # (n, h, w, c) of input and output
    out_shape: tuple[int, ...]
    kernel: tuple[int, int]  # vertical, horizontal
    stride: tuple[int, int]
    dilation: tuple[int, int]
    top: int  # padding elements in front
    left: int

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        out_shape: Sequence[int],
        kernel: Sequence[int],
        stride: tuple[int, int],
        padding: PaddingSpec,
        dilation: tuple[int, int] = (1, 1),
    ) -> Windows:
        """Windows with padding as an operation describes it."""
        top, left = (
            resolve_padding(padding, shape[1 + a], kernel[a], stride[a], dilation[a], a)[0]
            for a in range(2)
        )
        size = (kernel[0], kernel[1])
        return cls(tuple(shape), tuple(out_shape), size, stride, dilation, top, left)

    def taps(self) -> list[tuple[int, int]]:
        """Every element of a window, row by row."""
        return [
            (y * self.dilation[0], x * self.dilation[1])
            for y in range(self.kernel[0])
            for x in range(self.kernel[1])
        ]

    @property
    def num_taps(self) -> int:
        """Elements of a window."""
        return self.kernel[0] * self.kernel[1]

    def slots_by_tap(self, columns: int) -> Slots:
        """Return for each tap the elements of all pixels of a tile."""
        slots = np.empty((*self.kernel, columns, 2), np.int64)
        slots[..., 0] = self.dilation[0] * np.arange(self.kernel[0])[:, None, None]
        slots[..., 1] = self.dilation[1] * np.arange(self.kernel[1])[:, None]
        slots[..., 1] += self.stride[1] * np.arange(columns)
        return slots.reshape(-1, 2)

    def extent(self, rows: int, columns: int) -> tuple[int, int]:
        """Rows and columns of the input that a tile reaches over."""
        tile = (rows, columns)
        height, width = (
            (tile[a] - 1) * self.stride[a] + (self.kernel[a] - 1) * self.dilation[a] + 1
            for a in range(2)
        )
        return height, width

    def num_tiles(self, rows: int, columns: int) -> int:
        """calls.Tiles of an image."""
        return -(-self.out_shape[1] // rows) * -(-self.out_shape[2] // columns)

    def best_tile(
        self, choices: Choices, family: str, tiles: Sequence[tuple[int, int]]
    ) -> tuple[int, int]:
        """The tile size with the least pixels outside of the output; of equal ones the first."""
        out_shape = tuple(map(current, self.out_shape))  # any tile is right for any sizes
        now, about = (
            replace(self, out_shape=out_shape),
            (*self.kernel, *self.stride, *self.dilation),
        )
        return choices.choose(
            f"{family} tile",
            (*out_shape, *about),
            tiles,
            lambda tile: now.num_tiles(*tile) * tile[0] * tile[1],
        )


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiling of an output: a kernel's walk over it."""

    rows: int  # pixels of a tile
    columns: int
    width: int  # channels of a block
    slots: Slots  # sequence of (int, int), or ndarray, int64, shape (slots, 2)


def best_width(choices: Choices, family: str, windows: Windows, costs: Mapping[int, float]) -> int:
    """The width of blocks that costs least, where a block of each width costs as given."""
    channels = windows.out_shape[3]
    (width,) = choices.choose(
        f"{family} width",
        (*windows.out_shape, *windows.kernel, *windows.stride, *windows.dilation),
        [(width,) for width in costs],
        lambda option: len(block_starts(channels, option[0])) * costs[option[0]],
    )
    return width


def tiles_of(
    emit: Emitter,
    source: Buffer,
    target: Buffer,
    windows: Windows,
    tiling: Tiling,
    padding: npt.NDArray[np.float32] | npt.NDArray[np.uint16] | npt.NDArray[np.uint8],
    out_bytes: int = 0,
) -> calls.Tiles:
    """The walk over the output that calls of kernels over windows begin with.

    Parameters
    ----------
    padding : ndarray, float32, uint16 or uint8, shape (channels of the input,)
        What a pixel outside of the image is.
    out_bytes
        Size of an element of the output; 0 for that of the input.
    """
    images, in_height, in_width, channels = windows.shape
    _, out_height, out_width, out_channels = windows.out_shape
    out_bytes = out_bytes or padding.itemsize
    in_pixel, out_pixel = channels * padding.itemsize, out_channels * out_bytes
    slots = np.asarray(tiling.slots, np.int64).reshape(-1, 2)
    places: list[list[int]] = slots.T.tolist()
    offsets = [(row * in_width + column) * in_pixel for row, column in zip(*places, strict=True)]
    tables = 8 * (len(slots) + 2 * tiling.rows * tiling.columns)
    # calls.Tiles at the end write into it what lies outside of the output.
    scratch_bytes = -(-(tables + out_pixel + 64) // 64) * 64
    extent_h, extent_w = windows.extent(tiling.rows, tiling.columns)
    return calls.Tiles(
        source=source,
        target=target,
        padding=emit.constant(padding),
        slots=emit.table([*places, offsets]),
        scratch=emit.scratch(scratch_bytes * emit.num_threads),
        scratch_bytes=scratch_bytes,
        num_slots=len(slots),
        images=images,
        in_height=in_height,
        in_width=in_width,
        out_height=out_height,
        out_width=out_width,
        stride_h=windows.stride[0],
        stride_w=windows.stride[1],
        top=windows.top,
        left=windows.left,
        extent_h=extent_h,
        extent_w=extent_w,
        in_pixel_bytes=in_pixel,
        out_pixel_bytes=out_pixel,
        width_bytes=tiling.width * out_bytes,
        num_blocks=len(block_starts(out_channels, tiling.width)),
    )


def readable_past(emit: Emitter, buffer: Buffer, size_bytes: int, label: str) -> Buffer:
    """Return a buffer with the same bytes that kernels may read past its end."""
    if buffer.space is not Space.TENSORS:
        return buffer
    copy = emit.scratch(size_bytes)
    emit(calls.Copy(buffer, copy, size_bytes), f"copy for {label}", part="copy")
    return copy
