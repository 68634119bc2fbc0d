"""Convolutions and matrix products of 16-bit elements, added up exactly."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import pixels
from armpy_numba_acc.tiles.gemm_i16 import call_tile_i16, tile_definition_i16

ARGUMENTS = (
    *pixels.ARGUMENTS,
    "heads",
    "head_bytes",
    "taps_at_once",
    "input_step",
    "output_bytes",
    "zero_point",
    "low",
    "high",
)
"""In the order of the kernel's arguments. `steps` are pairs of elements of each tap. `heads` say
how sums are rescaled, `head_bytes` apart from panel to panel; `input_step` is from one panel's
elements of the input to the next one's, in bytes."""

_FIRST = len(pixels.ARGUMENTS)


def make(
    isa: Isa,
    rows: int,
    vectors: int,
    has_table: int,
    has_pieces: int,
    is_depthwise: int,
    output_kind: str,
    rounding: str,
) -> Linked:
    """Make the kernel for one size of tiles; see `tile_definition_i16`.

    Notes
    -----
    Each pixel of the output takes pairs of elements at each tap's offset behind the address of
    its pixel of the input. For threads see `armpy_numba_acc.llvm.sharing.share_tiles`.
    """
    definition = tile_definition_i16(
        isa,
        rows,
        vectors,
        has_table=bool(has_table),
        has_pieces=bool(has_pieces),
        is_depthwise=bool(is_depthwise),
        output_kind=output_kind,
        rounding=rounding,
    )
    return Linked(_convolution_i16, definition)


@njit(inline="always")
def _compute_tile(args, address, pixel, count, first_panel, last_panel):
    """As for `tile_walk`."""
    output, weights, taps = load_i64(args, 1), load_i64(args, 2), load_i64(args, 3)
    num_taps, steps, columns = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
    pixel_pitch, out_pitch = load_i64(args, 12), load_i64(args, 13)
    panel_bytes, width = load_i64(args, 14), load_i64(args, 17)
    heads, head_bytes = load_i64(args, _FIRST), load_i64(args, _FIRST + 1)
    taps_at_once, input_step = load_i64(args, _FIRST + 2), load_i64(args, _FIRST + 3)
    output_bytes, zero_point = load_i64(args, _FIRST + 4), load_i64(args, _FIRST + 5)
    low, high = load_i64(args, _FIRST + 6), load_i64(args, _FIRST + 7)
    for panel in range(first_panel, last_panel):
        call_tile_i16(
            address + panel * input_step,
            pixel_pitch,
            taps,
            num_taps,
            taps_at_once,
            steps,
            weights + panel * panel_bytes,
            heads + panel * head_bytes,
            output + pixel * out_pitch + panel * width * output_bytes,
            out_pitch,
            count,
            columns - panel * width,
            zero_point,
            low,
            high,
        )


_convolution_i16 = pixels.tile_walk(_compute_tile)
