"""L2 normalisation: rows divided by their Euclidean norms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.llvm.values import CodeValue, larger
from armpy_numba_acc.machine.calls.rows import L2Normalization
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.row_pass import make_row_pass

Pair = tuple[CodeValue | None, CodeValue | None]


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows."""
    kinds = ("f32", "f32")
    zero = np.float32(0)

    def square(x: CodeValue, *_: CodeValue) -> Pair:
        return None, x * x

    def quotient(x: CodeValue, total: CodeValue, *_: CodeValue) -> Pair:
        return x * (1.0 / total.sqrt()), None

    add_up = make_row_pass(isa, kinds, square, CodeValue.__add__, 0.0)
    write = make_row_pass(isa, kinds, quotient, larger, 0.0)

    read = reader(L2Normalization)

    def l2_normalization(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length = call.length
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            here, there = call.source + row * length * 4, call.target + row * length * 4
            total = add_up(here, there, length, zero, zero, zero, zero, zero)
            write(here, there, length, max(total, call.least), zero, zero, zero, zero)

    return l2_normalization
