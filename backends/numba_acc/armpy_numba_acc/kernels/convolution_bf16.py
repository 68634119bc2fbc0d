"""Convolutions and matrix products of bfloat16 elements, added up in float32."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import pixels
from armpy_numba_acc.tiles.gemm_bf16 import call_tile_bf16, tile_definition_bf16

ARGUMENTS = (
    *pixels.ARGUMENTS,
    "residual",
    "residual_pitch",
    "low",
    "high",
    "residual_bytes",
    "output_bytes",
)
"""In the order of the kernel's arguments. `steps` are pairs of elements of each tap. The last two
are the sizes of an element."""

_FIRST = len(pixels.ARGUMENTS)


def make(
    isa: Isa,
    rows: int,
    vectors: int,
    has_table: int,
    is_odd: int,
    residual_kind: str,
    output_kind: str,
) -> Linked:
    """Make the kernel for one size of tiles; see `tile_definition_bf16`.

    Notes
    -----
    Each pixel of the output takes pairs of elements at each tap's offset behind the address of
    its pixel of the input. For threads see `armpy_numba_acc.llvm.sharing.share_tiles`.
    """
    definition = tile_definition_bf16(
        isa,
        rows,
        vectors,
        has_table=bool(has_table),
        is_odd=bool(is_odd),
        residual_kind=residual_kind,
        output_kind=output_kind,
    )
    return Linked(_convolution_bf16, definition)


@njit(inline="always")
def _compute_tile(args, address, pixel, count, first_panel, last_panel):
    """As for `tile_walk`."""
    output, weights, taps = load_i64(args, 1), load_i64(args, 2), load_i64(args, 3)
    num_taps, steps, columns = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
    pixel_pitch, out_pitch = load_i64(args, 12), load_i64(args, 13)
    panel_bytes, width = load_i64(args, 14), load_i64(args, 17)
    residual, residual_pitch = load_i64(args, _FIRST), load_i64(args, _FIRST + 1)
    low, high = load_i64(args, _FIRST + 2), load_i64(args, _FIRST + 3)
    residual_bytes, output_bytes = load_i64(args, _FIRST + 4), load_i64(args, _FIRST + 5)
    for panel in range(first_panel, last_panel):
        call_tile_bf16(
            address,
            pixel_pitch,
            taps,
            num_taps,
            steps,
            weights + panel * panel_bytes,
            output + pixel * out_pitch + panel * width * output_bytes,
            out_pitch,
            residual + pixel * residual_pitch + panel * width * residual_bytes,
            residual_pitch,
            count,
            columns - panel * width,
            low,
            high,
        )


_convolution_bf16 = pixels.tile_walk(_compute_tile)
