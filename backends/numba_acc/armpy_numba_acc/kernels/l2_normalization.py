"""L2 normalisation: rows divided by their Euclidean norms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.llvm.values import Value, larger
from armpy_numba_acc.machine.calls.rows import L2Normalization
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import functions as f
from armpy_numba_acc.tiles.row_pass import make_row_pass

Pair = tuple[Value | None, Value | None]


def make(isa: Isa, kind: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows."""
    is_float = kind == "f32"
    kinds = (kind, kind)
    zero = np.float32(0)
    size = 4 if is_float else 1

    def centred(x: Value, zero_point: Value) -> Value:
        return x if is_float else x.to_float() - zero_point

    def square(x: Value, zero_point: Value, *_: Value) -> Pair:
        value = centred(x, zero_point)
        return None, value * value

    def quotient(
        x: Value, zero_point: Value, total: Value, per_scale: Value, output_zero: Value, _: Value
    ) -> Pair:
        result = centred(x, zero_point) * (per_scale / total.sqrt())
        if is_float:
            return result, None
        return f.to_stored(result, output_zero, -output_zero, 255.0 - output_zero), None

    add_up = make_row_pass(isa, kinds, square, Value.__add__, 0.0)
    write = make_row_pass(isa, kinds, quotient, larger, 0.0)

    read = reader(L2Normalization)

    def l2_normalization(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        length, zero_point = call.length, call.zero_point
        per_scale, output_zero = call.per_scale, call.output_zero_point
        first, last = share_items(call.rows, thread, num_threads)
        for row in range(first, last):
            here, there = call.source + row * length * size, call.target + row * length * size
            total = add_up(here, there, length, zero_point, zero, zero, zero, zero)
            total = max(total, call.least)
            write(here, there, length, zero_point, total, per_scale, output_zero, zero)

    return l2_normalization
