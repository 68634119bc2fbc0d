"""Products of two matrices of 16-bit elements, added up in 64 bits."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.fixed_point import limited
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i16, load_i64, store_i16, store_i64
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.calls.products import ProductI16
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows of x."""
    read = reader(ProductI16)

    def product_i16(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        totals = call.scratch + thread_of(shares) * call.scratch_bytes
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            x = call.x + 2 * row * call.depth
            target = call.target + 2 * row * call.columns
            for j in range(call.columns):
                store_i64(totals, j, 0)
            for k in range(call.depth):
                element = load_i16(x, k)
                y = call.y + 2 * k * call.columns
                for j in range(call.columns):
                    store_i64(totals, j, load_i64(totals, j) + element * load_i16(y, j))
            for j in range(call.columns):
                value = (load_i64(totals, j) * call.factor + call.addend) >> call.shift
                store_i16(target, j, limited(value, -32768, 32767))

    return product_i16
