"""Calls of kernels over windows of an image."""

from __future__ import annotations

from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.work import WorkKind


@dataclass(frozen=True, slots=True)
class Tiles(Call):
    """The walk over an output tile by tile, which begins the call of every kernel over windows."""

    source: Pointer  # images in NHWC
    target: Pointer
    padding: Pointer  # a row of padding elements
    # Three tables of `num_slots` int64: rows and columns relative to a tile's first pixel in the
    # input, and their results in bytes.
    slots: Pointer
    scratch: Pointer  # `scratch_bytes` for every thread
    scratch_bytes: int
    num_slots: int
    images: int
    in_height: int
    in_width: int
    out_height: int
    out_width: int
    stride_h: int  # stride, and padding elements in front
    stride_w: int
    top: int
    left: int
    extent_h: int  # pixels of the input that a tile reaches over
    extent_w: int
    in_pixel_bytes: int
    out_pixel_bytes: int
    width_bytes: int  # a block is `width_bytes` of the output's pixels
    num_blocks: int


@dataclass(frozen=True, slots=True)
class PoolingF32(Call):
    """Pool float32: maximum, mean or root mean square of windows, between two bounds."""

    parameters = ("lanes", "columns", "parts", "algorithm")

    lanes: int  # channels of a vector, pixels of a tile, vectors of each
    columns: int
    parts: int
    algorithm: str
    tiles: Tiles  # with a slot for each element of a window and pixel of a tile
    kernel_h: int  # size of a window
    kernel_w: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PoolingI16(Call):
    """Pool 16-bit elements; as `PoolingF32`, with bounds that are stored integers."""

    parameters = ("lanes", "columns", "algorithm")

    lanes: int
    columns: int
    algorithm: str
    tiles: Tiles
    kernel_h: int
    kernel_w: int
    low: int
    high: int


SMALL, MOST_SMALL = 2, 11
"""Windows of so few bytes that quotients of 16 bits are exact."""


@dataclass(frozen=True, slots=True)
class PoolingU8(Call):
    """Pool bytes; as `PoolingI16`."""

    parameters = ("width", "columns", "algorithm", "has_words")

    width: int  # channels of a block
    columns: int
    algorithm: str
    has_words: int  # whether sums fit 16 bits; `SMALL` for windows of at most `MOST_SMALL` elements
    tiles: Tiles
    kernel_h: int
    kernel_w: int
    # Of means: what is added, what elements are counted from, and the input's scale relative to the
    # output's.
    zero_point: int
    in_zero_point: int
    scale: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class DepthwiseF32(Call):
    """Convolve each channel of a float32 image with a filter of its own."""

    parameters = (
        *("lanes", "kernel_h", "kernel_w", "stride_h", "stride_w", "rows", "columns"),
        *("is_single", "input_kind", "output_kind"),
    )
    work: ClassVar[WorkKind] = WorkKind.WINDOWS

    lanes: int  # channels of a block
    # Of the window. (0, 1) for any number of taps: every pixel of the tile has slots of its own
    # then, tap by tap, and `rows` is 1. Otherwise there is a slot for each pixel of the input that
    # the tile reads, row by row.
    kernel_h: int
    kernel_w: int
    stride_h: int  # `rows` and `columns` are pixels of the tile
    stride_w: int
    rows: int
    columns: int
    is_single: int  # whether the input has one channel, which all of the output's read
    input_kind: str  # how elements are stored
    output_kind: str
    tiles: Tiles
    weights: Pointer  # for each block the bias, then one line per tap: `block_bytes`
    num_taps: int
    block_bytes: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DepthwiseU8(Call):
    """Convolve each channel of an image of bytes with a filter of its own."""

    parameters = (
        *("width", "kernel_w", "stride_w", "rows", "columns"),
        *("has_words", "has_negatives", "is_imprecise"),
    )
    work: ClassVar[WorkKind] = WorkKind.BYTE_WINDOWS

    width: int  # channels of a block, window and stride along a row, pixels of the tile
    kernel_w: int
    stride_w: int
    rows: int
    columns: int
    has_words: int  # whether weights are 16-bit integers
    has_negatives: int  # as for `armpy_numba_acc.tiles.finish.exact_scaling`
    is_imprecise: int
    # Rows of the input come in groups of four, with four slots for each group and each column of
    # the input that the tile reads.
    tiles: Tiles
    weights: Pointer  # as `armpy_numba_acc.packing.depthwise.pack_u8` makes them
    num_groups: int
    block_bytes: int
    zero_point: int  # of the output
    low: int
    high: int
