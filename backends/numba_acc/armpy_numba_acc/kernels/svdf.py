"""Filters inputs, remembers the results, and filters what is remembered."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit

from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.fixed_point import limited, rescaled, wrapped
from armpy_numba_acc.llvm.pointers import (
    load_f32,
    load_i16,
    load_i32,
    load_i64,
    store_f32,
    store_i16,
    store_i32,
    store_u8,
)
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.activate import make_activate
from armpy_numba_acc.tiles.blocks import make_copy_run
from armpy_numba_acc.tiles.reductions import add_in_any_order
from armpy_numba_acc.tiles.short_dots import make_line_dots, make_short_dot

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
only integers need them. Their features are lines of `armpy_numba_acc.packing.weights_u8`, their
times weigh the old state as it is stored, and are followed by the weights of the newest entries.
`scratch` is a vector per thread for floats, for integers an int32 per
filter."""


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
        return _make_q8(isa, shifts_first)
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


@njit(error_model="numpy")
def _write_output(args, batch, first, last):
    """Add the filters of each unit, and rescale."""
    output, bias = load_i64(args, 3), load_i64(args, 6)
    units, rank = load_i64(args, 9), load_i64(args, 11)
    multiplier, shift = load_i64(args, 15), load_i64(args, 16)
    zero_point, sums = load_i64(args, 17), load_i64(args, 18)
    for unit in range(first, last):
        total = int32(load_i32(bias, unit) if bias != 0 else 0)
        for turn in range(rank):
            total += load_i32(sums, unit * rank + turn)
        # All filters of the unit have been read: the first one's place is free.
        store_i32(sums, unit * rank, total)
    for unit in range(first, last):
        total = wrapped(load_i32(sums, unit * rank))
        stored = rescaled(total, multiplier, shift) + zero_point
        store_u8(output, batch * units + unit, limited(stored, 0, 255))


def _make_q8(isa: Isa, shifts_first: int):
    """Make the kernel for integers.

    Notes
    -----
    Everything is done for all filters of a thread before the next thing, so that what is one
    number per filter is computed for many at once. Threads take whole panels of filters.
    """
    dots_of_panel = make_line_dots(isa)
    dot_words = make_short_dot(("i16", "i16"), 8)
    copy = make_copy_run(isa)
    lanes, step_bytes = isa.lanes, dot_products(isa).bytes_per_vector

    @njit(error_model="numpy")
    def filter_input(args, batch, first, last):
        """Put the newest entries, as the state has them, into the scratch memory."""
        inputs, feature_bias = load_i64(args, 8), load_i64(args, 12)
        multiplier, shift = load_i64(args, 13), load_i64(args, 14)
        entries = load_i64(args, 18)
        data, features = load_i64(args, 0) + batch * inputs, load_i64(args, 4)
        steps = (inputs + 3) // 4
        for number in range(first, last):
            store_i32(entries, number, load_i32(feature_bias, number))
        for panel in range(first // lanes, (last + lanes - 1) // lanes):
            weights = features + panel * steps * step_bytes
            dots_of_panel(data, weights, steps, entries + 4 * lanes * panel)
        for number in range(first, last):
            entry = rescaled(int64(load_i32(entries, number)), multiplier, shift)
            store_i32(entries, number, limited(entry, -32768, 32767))

    @njit(error_model="numpy")
    def filter_memory(args, batch, first, last, num_filters):
        """Put the sums over time in the place of the entries, and move the state."""
        memory, entries = load_i64(args, 10), load_i64(args, 18)
        size = 2 * memory
        state_in = load_i64(args, 1) + batch * num_filters * size
        state_out = load_i64(args, 2) + batch * num_filters * size
        times = load_i64(args, 5)
        newest_times = times + num_filters * size
        newest = memory - 1 if shifts_first else memory - 2
        for number in range(first, last):
            old, new, time = state_in + number * size, state_out + number * size, number * size
            time += times
            entry = load_i32(entries, number)
            sums = dot_words(old, time, memory)
            store_i32(entries, number, sums + entry * int32(load_i16(newest_times, number)))
            if memory > 1:
                copy(new, old + 2, size - 2)
            if not shifts_first:
                store_i16(new, memory - 1, 0)
            if newest >= 0:
                store_i16(new, newest, entry)

    def svdf_q8(args, thread, num_threads):
        batches, units, rank = load_i64(args, 7), load_i64(args, 9), load_i64(args, 11)
        # So many units have whole panels of filters, whatever the rank is.
        panels = share_items((units + lanes - 1) // lanes, thread, num_threads)
        first, last = panels[0] * lanes, min(panels[1] * lanes, units)
        for batch in range(batches):
            filter_input(args, batch, first * rank, last * rank)
            filter_memory(args, batch, first * rank, last * rank, units * rank)
            _write_output(args, batch, first, last)

    return svdf_q8
