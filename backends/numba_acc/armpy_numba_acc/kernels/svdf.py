"""Filters inputs, remembers the results, and filters what is remembered."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import int32, int64

from armpy_numba_acc.codegen.activate import make_activate
from armpy_numba_acc.codegen.fixed_point import limited, rescaled, wrapped
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pointers import (
    load_f32,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i16,
    store_u8,
)
from armpy_numba_acc.codegen.reductions import add_in_any_order
from armpy_numba_acc.codegen.sharing import share_items

ARGUMENTS = (
    "input",
    "state_in",
    "state_out",
    "output",
    "features",
    "times",
    "bias",
    "batches",
    "inputs",
    "units",
    "memory",
    "rank",
    "feature_bias",
    "to_state",
    "to_state_shift",
    "to_output",
    "to_output_shift",
    "zero_point",
    "scratch",
)
"""`bias` may be 0. From `feature_bias` on, which has an int32 per filter, up to `zero_point`,
only integers need them; only floats need `scratch`, a vector per thread."""


def make(isa: Isa, kind: str, shifts_first: int, activation: str):
    """Make the kernel; threads share the units.

    Parameters
    ----------
    kind : {"f32", "q8"}
        "q8" has a state of 16 bits.
    shifts_first : int
        Whether the state ends with the newest entry, or with a 0 in the next one's place.
    activation : str
        Name of the `armpy.ops.RecurrentActivation`; "NONE" for integers.
    """
    if kind == "q8":
        return _make_q8(shifts_first)
    return _make_f32(make_activate(isa.lanes, activation), shifts_first)


def _make_f32(activate, shifts_first: int):
    """Make the kernel for floats."""

    def svdf_f32(args, thread, num_threads):
        input_, state_in, state_out = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        output, features, times = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        bias, batches, inputs = load_i64(args, 6), load_i64(args, 7), load_i64(args, 8)
        units, memory, rank = load_i64(args, 9), load_i64(args, 10), load_i64(args, 11)
        scratch = load_i64(args, 18) + thread * 64
        first, last = share_items(batches * units, thread, num_threads)
        for number in range(first, last):
            batch = number // units
            unit = number - batch * units
            total = load_f32(bias, unit) if bias != 0 else np.float32(0)
            for turn in range(rank):
                filter_ = unit * rank + turn
                row = (batch * units * rank + filter_) * memory * 4
                weights = features + filter_ * inputs * 4
                data = input_ + batch * inputs * 4
                entry = np.float32(0)
                for i in range(inputs):
                    entry = add_in_any_order(entry, load_f32(data, i) * load_f32(weights, i))
                time = times + filter_ * memory * 4
                kept = state_in + row + (4 if shifts_first else 0)
                sums = entry * load_f32(time, memory - 1)
                for i in range(memory - 1):
                    sums = add_in_any_order(sums, load_f32(kept, i) * load_f32(time, i))
                total += sums
                moved = state_in + row + 4
                for i in range(memory - 1):
                    store_f32(state_out + row, i, load_f32(moved, i))
                if shifts_first:
                    store_f32(state_out + row, memory - 1, entry)
                else:
                    if memory > 1:
                        store_f32(state_out + row, memory - 2, entry)
                    store_f32(state_out + row, memory - 1, np.float32(0))
            store_f32(scratch, 0, total)
            activate(scratch, scratch)
            store_f32(output, number, load_f32(scratch, 0))

    return svdf_f32


def _make_q8(shifts_first: int):
    """Make the kernel for integers."""

    def svdf_q8(args, thread, num_threads):
        input_, state_in, state_out = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        output, features, times = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        bias, batches, inputs = load_i64(args, 6), load_i64(args, 7), load_i64(args, 8)
        units, memory, rank = load_i64(args, 9), load_i64(args, 10), load_i64(args, 11)
        feature_bias, to_state, to_state_shift = (
            load_i64(args, 12),
            load_i64(args, 13),
            load_i64(args, 14),
        )
        to_output, to_output_shift = load_i64(args, 15), load_i64(args, 16)
        zero_point = load_i64(args, 17)
        first, last = share_items(batches * units, thread, num_threads)
        for number in range(first, last):
            batch = number // units
            unit = number - batch * units
            total = int32(load_i32(bias, unit) if bias != 0 else 0)
            for turn in range(rank):
                filter_ = unit * rank + turn
                row = (batch * units * rank + filter_) * memory * 2
                weights = features + filter_ * inputs
                data = input_ + batch * inputs
                sums = int32(load_i32(feature_bias, filter_))
                for i in range(inputs):
                    sums += int32(load_u8(data, i)) * int32(load_i8(weights, i))
                entry = limited(rescaled(int64(sums), to_state, to_state_shift), -32768, 32767)
                time = times + filter_ * memory * 2
                kept = state_in + row + (2 if shifts_first else 0)
                total += int32(entry) * int32(load_i16(time, memory - 1))
                for i in range(memory - 1):
                    total += int32(load_i16(kept, i)) * int32(load_i16(time, i))
                moved = state_in + row + 2
                for i in range(memory - 1):
                    store_i16(state_out + row, i, load_i16(moved, i))
                if shifts_first:
                    store_i16(state_out + row, memory - 1, entry)
                else:
                    if memory > 1:
                        store_i16(state_out + row, memory - 2, entry)
                    store_i16(state_out + row, memory - 1, 0)
            stored = rescaled(wrapped(total), to_output, to_output_shift) + zero_point
            store_u8(output, number, limited(stored, 0, 255))

    return svdf_q8
