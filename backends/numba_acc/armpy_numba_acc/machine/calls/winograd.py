"""Calls of kernels that convolve with fewer multiplications."""

from __future__ import annotations

from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.work import WorkKind


@dataclass(frozen=True, slots=True)
class WinogradTiles(Call):
    """Arguments at the head of every kernel that convolves images by Winograd's algorithm."""

    source: Pointer  # images in NHWC
    target: Pointer
    residual: Pointer  # added to the output; 0 for nothing
    weights: Pointer  # see `armpy_numba_acc.packing.winograd`
    # A pixel of the padding's elements, as long as the input's and the output's.
    padding: Pointer
    scratch: Pointer  # `scratch_bytes` for every thread
    scratch_bytes: int
    images: int  # of the output: slices of all volumes, which have one each if they are images
    in_slices: int  # of a volume
    out_slices: int
    window_slices: int  # that are added up
    slice_stride: int  # from a slice of the output to the next one's window
    slice_step: int  # from a slice of a window to the next one
    in_height: int
    in_width: int
    out_height: int
    out_width: int
    step_down: int  # from a row of a window to the next one, and from a column
    step_right: int
    front: int  # padding elements in front
    top: int
    left: int
    depth: int  # channels of the input and of the output, a vector of values at least
    columns: int
    batch: int  # tiles of the output that are computed at once, a multiple of `product_rows`


@dataclass(frozen=True, slots=True)
class WinogradF32(Call):
    """Convolve float32 images with 3x3 filters by Winograd's algorithm."""

    parameters = ("down", "right", "product_rows", "vectors")

    down: int  # half the pixels of a tile of the output in each direction
    right: int
    product_rows: int  # tiles and registers of channels that are multiplied at once
    vectors: int
    tiles: WinogradTiles
    bias: Pointer
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WinogradU8(Call):
    """Convolve an image of bytes in the same way, with tiles of two by two pixels."""

    parameters = (
        "product_rows",
        "vectors",
        "has_negatives",
        "has_bounds",
        "has_large_scales",
        "is_imprecise",
        "has_residual",
    )
    work: ClassVar[WorkKind] = WorkKind.PAIRS

    product_rows: int  # as of `WinogradF32`
    vectors: int
    # As for `armpy_numba_acc.tiles.finish.byte_finish.ByteFinish`.
    has_negatives: int
    has_bounds: int
    has_large_scales: int
    is_imprecise: int
    has_residual: int
    tiles: WinogradTiles
    bias: Pointer
    scales: Pointer  # the columns' factors, see `armpy_numba_acc.packing.factors`
    nudges: Pointer
    exact: Pointer
    sum: Pointer  # parameters of the residual's sum
    zero_point: int  # of the output
    low: int
    high: int
