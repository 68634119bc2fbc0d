"""Rows divided by their Euclidean norms."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.llvm.values import Value, larger
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import functions as f
from armpy_numba_acc.tiles.row_pass import make_row_pass

ARGUMENTS = (
    "input",
    "output",
    "rows",
    "length",
    "least",
    "zero_point",
    "per_scale",
    "output_zero_point",
)
"""`least` is the least sum of squares that is divided by the root of, in steps of the input;
`per_scale` is 1 by the output's scale. The last four are float32."""

Pair = tuple[Value | None, Value | None]


def make(isa: Isa, kind: str):
    """Make the kernel; threads share the rows.

    Parameters
    ----------
    isa : Isa
    kind : str
        ``f32`` or ``u8``.
    """
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

    def l2_normalization(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        rows, length = load_i64(args, 2), load_i64(args, 3)
        least, zero_point = bits_to_f32(load_i64(args, 4)), bits_to_f32(load_i64(args, 5))
        per_scale = bits_to_f32(load_i64(args, 6))
        output_zero = bits_to_f32(load_i64(args, 7))
        first, last = share_items(rows, thread, num_threads)
        for row in range(first, last):
            here, there = source + row * length * size, target + row * length * size
            total = max(add_up(here, there, length, zero_point, zero, zero, zero, zero), least)
            write(here, there, length, zero_point, total, per_scale, output_zero, zero)

    return l2_normalization
