"""Calls of kernels that convolve with fewer multiplications."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class WinogradF32(Call):
    """Convolve a float32 image with 3x3 filters by Winograd's algorithm.

    Parameters
    ----------
    down, right : int
        Half the pixels of a tile of the output in each direction.
    product_rows, vectors : int
        Tiles and registers of channels that are multiplied at once.
    source, target : Pointer
        Images in NHWC.
    residual : Pointer
        Added to the output; 0 for nothing.
    weights, bias : Pointer
        See `armpy_numba_acc.packing.winograd`.
    zeros : Pointer
        A pixel of them, as long as the input's and the output's.
    scratch, scratch_bytes : Pointer, int
        `scratch_bytes` for every thread.
    top, left : int
        Padding elements in front.
    depth, columns : int
        Channels of the input and of the output, multiples of a vector's lanes.
    batch : int
        Tiles of the output that are computed at once, a multiple of `product_rows`.
    low, high : float
    """

    parameters = ("down", "right", "product_rows", "vectors")

    down: int
    right: int
    product_rows: int
    vectors: int
    source: Pointer
    target: Pointer
    residual: Pointer
    weights: Pointer
    bias: Pointer
    zeros: Pointer
    scratch: Pointer
    scratch_bytes: int
    images: int
    in_height: int
    in_width: int
    out_height: int
    out_width: int
    top: int
    left: int
    depth: int
    columns: int
    batch: int
    low: float
    high: float
