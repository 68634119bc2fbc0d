"""Layer normalisation: rows brought to mean 0 and variance 1, or to root mean square 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.arithmetic.reals import square_root_f32
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, store_f32
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.llvm.values import CodeValue
from armpy_numba_acc.machine.calls.rows import LayerNormalization
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.row_pass import make_row_pass

Pair = tuple[CodeValue | None, CodeValue | None]


def make(isa: Isa, form: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows."""
    has_mean, kinds = form == "mean", ("f32", "f32")
    zero, unit = np.float32(0), np.float32(1)

    def take(x: CodeValue, *_: CodeValue) -> Pair:
        return None, x

    def square(x: CodeValue, mean: CodeValue, *_: CodeValue) -> Pair:
        difference = x - mean
        return None, difference * difference

    add_up = make_row_pass(isa, kinds, take, CodeValue.__add__, 0.0)
    add_squares = make_row_pass(isa, kinds, square, CodeValue.__add__, 0.0)
    read = reader(LayerNormalization)

    def layer_normalization(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length, gamma, beta = call.length, call.gamma, call.beta
        count = np.float32(length)
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            here, there = call.source + row * length * 4, call.target + row * length * 4
            mean = zero
            if has_mean:
                mean = add_up(here, here, length, zero, zero, zero, zero, zero) / count
            squares = add_squares(here, here, length, mean, zero, zero, zero, zero)
            scale = unit / square_root_f32(squares / count + call.epsilon)
            for j in range(length):
                value = (load_f32(here, j) - mean) * scale
                store_f32(there, j, value * load_f32(gamma, j) + load_f32(beta, j))

    return layer_normalization
