"""Softmax and log-softmax of rows of float32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.llvm.values import CodeValue, larger
from armpy_numba_acc.machine.calls.rows import Softmax
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise import functions as f
from armpy_numba_acc.tiles.row_pass import make_row_pass

Pair = tuple[CodeValue | None, CodeValue | None]


def make(isa: Isa, function: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows."""
    is_log = function == "log_softmax"
    kinds = ("f32", "f32")
    zero = np.float32(0)

    def take(x: CodeValue, *_: CodeValue) -> Pair:
        return None, x

    def exponential(x: CodeValue, largest: CodeValue, factor: CodeValue, *_: CodeValue) -> Pair:
        result = f.exp_within((x - largest) * factor)
        return (None if is_log else result), result

    def scaled(
        x: CodeValue, _: CodeValue, __: CodeValue, total: CodeValue, *___: CodeValue
    ) -> Pair:
        return x * (1.0 / total), None

    def logarithm(
        x: CodeValue, largest: CodeValue, factor: CodeValue, total: CodeValue, *_: CodeValue
    ) -> Pair:
        return (x - largest) * factor - f.log(total), None

    find_largest = make_row_pass(isa, kinds, take, larger, -math.inf)
    add_up = make_row_pass(isa, kinds, exponential, CodeValue.__add__, 0.0)
    last = logarithm if is_log else scaled
    write = make_row_pass(isa, kinds, last, CodeValue.__add__, 0.0)

    read = reader(Softmax)

    def softmax(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length, factor = call.length, call.factor
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            here, there = call.source + row * length * 4, call.target + row * length * 4
            largest = find_largest(here, there, length, zero, zero, zero, zero, zero)
            total = add_up(here, there, length, largest, factor, zero, zero, zero)
            if not is_log:
                here = there
            write(here, there, length, largest, factor, total, zero, zero)

    return softmax
