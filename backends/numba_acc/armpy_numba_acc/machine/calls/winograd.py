"""Calls of kernels that convolve with fewer multiplications."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class WinogradF32(Call):
    """Convolve a float32 image with 3x3 filters by Winograd's algorithm."""

    parameters = ("down", "right", "product_rows", "vectors")

    down: int  # half the pixels of a tile of the output in each direction
    right: int
    product_rows: int  # tiles and registers of channels that are multiplied at once
    vectors: int
    source: Pointer  # images in NHWC
    target: Pointer
    residual: Pointer  # added to the output; 0 for nothing
    weights: Pointer  # see `armpy_numba_acc.packing.winograd`
    bias: Pointer
    zeros: Pointer  # a pixel of them, as long as the input's and the output's
    scratch: Pointer  # `scratch_bytes` for every thread
    scratch_bytes: int
    images: int
    in_height: int
    in_width: int
    out_height: int
    out_width: int
    top: int  # padding elements in front
    left: int
    depth: int  # channels of the input and of the output, multiples of a vector's lanes
    columns: int
    batch: int  # tiles of the output that are computed at once, a multiple of `product_rows`
    low: float
    high: float
