"""Recurrent networks, gated recurrent units and LSTMs of float32, over sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, load_i32, store_f32
from armpy_numba_acc.llvm.primitives import compiled, inlined
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.recurrent import RecurrentSequence
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.recurrent import PANEL
from armpy_numba_acc.tiles.recurrent import make_product, make_reset, make_update

_read = reader(RecurrentSequence)


@compiled
def _copy(target: Pointer, source: Pointer, count: int) -> None:
    """Copy elements."""
    for j in range(count):
        store_f32(target, j, load_f32(source, j))


@compiled
def _clear(target: Pointer, count: int) -> None:
    """Set elements to 0."""
    for j in range(count):
        store_f32(target, j, np.float32(0))


@inlined
def _length(lengths: Pointer, batch: int, times: int) -> int:
    """Steps of a batch's sequence."""
    if lengths == 0:
        return times
    return min(max(int(load_i32(lengths, batch)), 0), times)


def make(isa: Isa, cell: str, functions: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the batches."""
    names = tuple(functions.split())
    product, reset = make_product(isa), make_reset(isa, names[0])
    update = make_update(isa, cell, names)
    panel, resets_first, has_cell = PANEL * isa.lanes, cell == "GRU", cell.startswith("LSTM")

    def recurrent_sequence(args: int, thread: int, num_threads: int) -> None:
        call = _read(args)
        units, width, batches = call.units, call.width, call.batches
        hidden = call.scratch + thread * call.scratch_pitch
        state = hidden + width * 4
        sums = state + call.candidate_line * 4
        begun, end = share_items(batches, thread, num_threads)
        for batch in range(begun, end):
            _clear(hidden, width + call.candidate_line)
            _copy(hidden, call.hidden_in + batch * units * 4, units)
            if has_cell:
                _copy(state, call.cell_in + batch * units * 4, units)
            length = _length(call.lengths, batch, call.times)
            for step in range(length):
                row = (length - 1 - step if call.is_reversed else step) * batches + batch
                share = call.share + row * call.num_gates * width * 4
                product(sums, call.first, call.recurrent, hidden, units, call.line // panel)
                if resets_first:
                    # Behind the sums is room for what is reset.
                    passed = sums + call.line * 4
                    reset(passed, sums + width * 4, share + width * 4, hidden, width, call.limit)
                    first, panels = call.first + call.line * 4, call.candidate_line // panel
                    product(state, first, call.candidate, passed, units, panels)
                update(sums, share, hidden, state, call.peephole, width, call.limit)
                _copy(call.output + row * units * 4, hidden, units)
            for time in range(length, call.times):
                _clear(call.output + (time * batches + batch) * units * 4, units)
            _copy(call.hidden_out + batch * units * 4, hidden, units)
            if has_cell:
                _copy(call.cell_out + batch * units * 4, state, units)

    return recurrent_sequence
