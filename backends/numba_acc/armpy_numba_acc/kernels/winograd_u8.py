"""3x3 convolution of bytes by Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.machine.calls.winograd import WinogradU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.winograd_u8 import input_tile, multiply_tile, output_tile
from armpy_numba_acc.tiles.windows.winograd_walk import Steps, winograd_walk


def make(isa: Isa, *parameters: int) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters."""
    made_for = WinogradU8.made_for(*parameters)
    steps = Steps(
        height=2,
        width=2,
        element_bytes=1,
        value_bytes=2,
        transform_input=input_tile(isa),
        multiply=multiply_tile(isa, made_for.product_rows, made_for.vectors),
        product_rows=made_for.product_rows,
        vectors=made_for.vectors,
        transform_output=output_tile(isa, made_for),
    )
    return winograd_walk(isa, steps)
