"""Convolutions and matrix products of 8-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import int32, njit

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64, stack_memory, store_i32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import pixels
from armpy_numba_acc.tiles.byte_sum import call_byte_sum
from armpy_numba_acc.tiles.gemm_u8 import call_tile_u8, tile_definition_u8

ARGUMENTS = (
    *pixels.ARGUMENTS,
    "depth",
    "correction",
    "zero_point",
    "low",
    "high",
    "residual",
    "sum",
)
"""In the order of the kernel's arguments. `residual` is the address of elements that are added,
laid out as the output; `sum` that of what `armpy_numba_acc.lowering.weighted_u8.Residual` packs."""

_FIRST = len(pixels.ARGUMENTS)

_room = stack_memory(pixels.MOST_ROWS * 4)
"""For the corrections of a tile's rows."""

FLAGS = (
    "has_table",
    "has_corrections",
    "has_negatives",
    "has_bounds",
    "has_large_scales",
    "is_vague",
    "has_residual",
    "sum_has_negatives",
)
"""See `armpy_numba_acc.tiles.gemm_u8.tile_definition_u8`."""


def make(isa: Isa, rows: int, vectors: int, *flags: int) -> Linked:
    """Make the kernel for one size of tiles, and for what `FLAGS` say.

    Notes
    -----
    Each pixel of the output takes `depth` elements, in `steps` groups of four, at each tap's
    offset behind the address of its pixel of the input. With `has_corrections` the sum of these
    elements times `correction` is added. For threads see
    `armpy_numba_acc.llvm.sharing.share_tiles`.
    """
    named = dict(zip(FLAGS, map(bool, flags), strict=True))
    return Linked(_convolution_u8, tile_definition_u8(isa, rows, vectors, **named))


@njit(inline="always")
def _compute_tile(args, address, pixel, count, first_panel, last_panel):
    """As for `tile_walk`."""
    output, weights, taps = load_i64(args, 1), load_i64(args, 2), load_i64(args, 3)
    num_taps, steps, columns = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
    pixel_pitch, out_pitch = load_i64(args, 12), load_i64(args, 13)
    panel_bytes, width = load_i64(args, 14), load_i64(args, 17)
    correction, zero_point = load_i64(args, _FIRST + 1), load_i64(args, _FIRST + 2)
    low, high = load_i64(args, _FIRST + 3), load_i64(args, _FIRST + 4)
    distance, parameters = load_i64(args, _FIRST + 5) - output, load_i64(args, _FIRST + 6)
    corrections = _room()
    if correction != 0:
        _correct_rows(args, corrections, address, count)
    for panel in range(first_panel, last_panel):
        call_tile_u8(
            address,
            pixel_pitch,
            corrections,
            taps,
            num_taps,
            steps,
            weights + panel * panel_bytes,
            output + pixel * out_pitch + panel * width,
            out_pitch,
            count,
            columns - panel * width,
            zero_point,
            low,
            high,
            distance,
            parameters,
        )


@njit(inline="always")
def _correct_rows(args, corrections, address, count):
    """Write what is added to the sums of each row."""
    taps, num_taps, depth = load_i64(args, 3), load_i64(args, 4), load_i64(args, _FIRST)
    for row in range(load_i64(args, 16)):
        first = address + min(row, count - 1) * load_i64(args, 12)
        if load_i64(args, 18) != 0:
            first = load_i64(address, row)
        total = 0
        for tap in range(num_taps):
            total += call_byte_sum(first + load_i64(taps, tap), depth)
        store_i32(corrections, row, int32(total * load_i64(args, _FIRST + 1)))


_convolution_u8 = pixels.tile_walk(_compute_tile)
