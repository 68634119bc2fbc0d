"""Products of pairs of float32 matrices, whose number and sizes are known only when it runs."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import BLOCK, share_items, thread_of
from armpy_numba_acc.machine.calls.products import ProductsF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.plain_product import make_plain_product


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the pairs' columns, a block of them at a time."""
    read, multiply = reader(ProductsF32), make_plain_product(isa)

    def products_f32(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        panel = call.scratch + thread_of(shares) * call.scratch_bytes
        blocks = (call.columns + BLOCK - 1) // BLOCK
        first, last = share_items(call.pairs * blocks, shares, num_shares)
        for number in range(first, last):
            pair = number // blocks
            column = (number - pair * blocks) * BLOCK
            x, y = call.x + pair * call.x_pitch, call.y + pair * call.y_pitch + 4 * column
            target = call.target + 4 * (pair * call.rows * call.columns + column)
            count = min(BLOCK, call.columns - column)
            multiply(target, x, y, panel, call.rows, call.depth, call.columns, count)

    return products_f32
