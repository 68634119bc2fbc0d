"""SVDF: filters inputs, stores the results, and filters the stored ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import int32

from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.arithmetic.fixed_point import limited, rescaled_once
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    load_f32,
    load_i8,
    load_i16,
    load_i32,
    store_f32,
    store_i16,
    store_i32,
    store_u8,
)
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.recurrent import Svdf
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run
from armpy_numba_acc.tiles.elementwise.activation import make_activate
from armpy_numba_acc.tiles.products.short_dots import make_line_dots, make_short_dot
from armpy_numba_acc.tiles.reductions import add_in_any_order

_read = reader(Svdf)


def make(
    isa: Isa, kind: str, shifts_first: int, activation: str
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the units."""
    if kind == "f32":
        return _make_f32(make_activate(isa.lanes, activation), shifts_first)
    return _make_integers(isa, kind, shifts_first)


def _make_f32(
    activate: Callable[[Pointer, Pointer], None], shifts_first: int
) -> Callable[[int, int, int], None]:
    """Make the kernel for floats."""

    def svdf_f32(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        bias, inputs, units = call.bias, call.inputs, call.units
        memory, rank = call.memory, call.rank
        scratch = call.scratch + thread_of(shares) * 64
        first, last = share_items(call.batches * units, shares, num_shares)
        for number in range(first, last):
            batch = number // units
            unit = number - batch * units
            total = load_f32(bias, unit) if bias != 0 else np.float32(0)
            for turn in range(rank):
                filter_ = unit * rank + turn
                row = (batch * units * rank + filter_) * memory * 4
                weights = call.features + filter_ * inputs * 4
                data = call.source + batch * inputs * 4
                entry = np.float32(0)
                for i in range(inputs):
                    entry = add_in_any_order(entry, load_f32(data, i) * load_f32(weights, i))
                time = call.times + filter_ * memory * 4
                history = call.state_in + row + (4 if shifts_first else 0)
                sums = entry * load_f32(time, memory - 1)
                for i in range(memory - 1):
                    sums = add_in_any_order(sums, load_f32(history, i) * load_f32(time, i))
                total += sums
                moved, state_out = call.state_in + row + 4, call.state_out + row
                for i in range(memory - 1):
                    store_f32(state_out, i, load_f32(moved, i))
                if shifts_first:
                    store_f32(state_out, memory - 1, entry)
                else:
                    if memory > 1:
                        store_f32(state_out, memory - 2, entry)
                    store_f32(state_out, memory - 1, np.float32(0))
            store_f32(scratch, 0, total)
            activate(scratch, scratch)
            store_f32(call.output, number, load_f32(scratch, 0))

    return svdf_f32


@compiled
def _write_output(args: int, batch: int, first: int, last: int) -> None:
    """Add the filters of each unit, and rescale."""
    call = _read(args)
    bias, rank, sums = call.bias, call.rank, call.scratch
    for unit in range(first, last):
        total = int32(load_i32(bias, unit) if bias != 0 else 0)
        for turn in range(rank):
            total += load_i32(sums, unit * rank + turn)
        # All filters of the unit have been read: the first one's place is free.
        store_i32(sums, unit * rank, total)
    for unit in range(first, last):
        total = load_i32(sums, unit * rank)
        stored = rescaled_once(total, call.to_output, call.to_output_shift) + call.zero_point
        store_u8(call.output, batch * call.units + unit, limited(stored, 0, 255))


_LIMITS = {"i16": (-32768, 32767), "i8": (-128, 127), "u8": (0, 255)}
"""Of what a state holds."""


def _make_integers(isa: Isa, kind: str, shifts_first: int) -> Callable[[int, int, int], None]:
    """Make the kernel for integers; `kind` is the format of the state's.

    Everything is done for all filters of a thread before the next thing, so that what is one
    number per filter is computed for many at once. Threads take whole panels of filters.
    """
    dots_of_panel = make_line_dots(isa)
    is_wide, (low, high) = kind == "i16", _LIMITS[kind]
    element = 2 if is_wide else 1
    load_time, store_state = (load_i16, store_i16) if is_wide else (load_i8, store_u8)
    dot_states = make_short_dot((kind, "i16" if is_wide else "i8"), 8)
    copy = make_copy_run(isa)
    lanes, step_bytes = isa.lanes, spread_products(isa).bytes_per_vector

    @compiled
    def filter_input(args: int, batch: int, first: int, last: int) -> None:
        """Put the newest entries, as the state has them, into the scratch memory."""
        call = _read(args)
        entries, data = call.scratch, call.source + batch * call.inputs
        steps = (call.inputs + 3) // 4
        for number in range(first, last):
            store_i32(entries, number, load_i32(call.feature_bias, number))
        for panel in range(first // lanes, (last + lanes - 1) // lanes):
            weights = call.features + panel * steps * step_bytes
            dots_of_panel(data, weights, steps, entries + 4 * lanes * panel)
        for number in range(first, last):
            entry = load_i32(entries, number)
            entry = rescaled_once(entry, call.to_state, call.to_state_shift)
            entry += call.state_zero_point
            store_i32(entries, number, limited(entry, low, high))

    @compiled
    def filter_memory(args: int, batch: int, first: int, last: int, num_filters: int) -> None:
        """Put the sums over time in the place of the entries, and move the state."""
        call = _read(args)
        memory, entries, times = call.memory, call.scratch, call.times
        size = element * memory
        state_in = call.state_in + batch * num_filters * size
        state_out = call.state_out + batch * num_filters * size
        newest_times = times + num_filters * size
        newest = memory - 1 if shifts_first else memory - 2
        # All rows in one: the last element of each is written afterwards.
        moved = (last - first) * size - element
        copy(state_out + first * size, state_in + first * size + element, moved)
        for number in range(first, last):
            old, new = state_in + number * size, state_out + number * size
            time = times + number * size
            entry = load_i32(entries, number)
            sums = dot_states(old, time, memory)
            store_i32(entries, number, sums + entry * int32(load_time(newest_times, number)))
            if not shifts_first:
                store_state(new, memory - 1, call.state_zero_point)
            if newest >= 0:
                store_state(new, newest, entry)

    def svdf_integers(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        units, rank = call.units, call.rank
        # So many units have whole panels of filters, whatever the rank is.
        panels = share_items((units + lanes - 1) // lanes, shares, num_shares)
        first, last = panels[0] * lanes, min(panels[1] * lanes, units)
        for batch in range(call.batches):
            filter_input(args, batch, first * rank, last * rank)
            filter_memory(args, batch, first * rank, last * rank, units * rank)
            _write_output(args, batch, first, last)

    return svdf_integers
