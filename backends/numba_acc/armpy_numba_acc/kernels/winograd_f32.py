"""3x3 convolution of float32 by Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.winograd import PAIRS
from armpy_numba_acc.tiles.windows.winograd_f32 import input_tile, multiply_tile, output_tile
from armpy_numba_acc.tiles.windows.winograd_walk import Steps, winograd_walk


def make(
    isa: Isa, down: int, right: int, product_rows: int, vectors: int
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters."""
    pairs = PAIRS[down], PAIRS[right]
    steps = Steps(
        height=2 * down,
        width=2 * right,
        element_bytes=4,
        value_bytes=4,
        transform_input=input_tile(isa, *pairs),
        multiply=multiply_tile(isa, product_rows, vectors),
        product_rows=product_rows,
        vectors=vectors,
        transform_output=output_tile(isa, *pairs),
    )
    return winograd_walk(isa, steps)
