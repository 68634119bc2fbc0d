"""Long short-term memory (LSTM) of float32, over sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from armpy_numba_acc.llvm.arithmetic.reals import square_root_f32
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, store_f32
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.recurrent import LstmF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.recurrent import PANEL
from armpy_numba_acc.tiles.elementwise.activation import make_activate
from armpy_numba_acc.tiles.recurrent import make_product
from armpy_numba_acc.tiles.reductions import add_in_any_order

Activate: TypeAlias = Callable[[Pointer, Pointer, int], None]
Step: TypeAlias = Callable[[Pointer, Pointer, int], None]
LetOut: TypeAlias = Callable[[Pointer, Pointer, Pointer, int], None]

# Functions are given the call's address: its fields by value would be copied at every step.
_read = reader(LstmF32)

_VARIANCE_OFFSET = np.float32(1e-8)


@compiled
def _add_weighted(target: Pointer, weights: Pointer, values: Pointer, count: int) -> None:
    """Add values times weights, element by element."""
    for j in range(count):
        store_f32(target, j, load_f32(target, j) + load_f32(weights, j) * load_f32(values, j))


@compiled
def _normalize(gate: Pointer, weights: Pointer, bias: Pointer, count: int) -> None:
    """Give a gate mean 0 and variance 1, weigh it and add the bias."""
    total = np.float32(0)
    for j in range(count):
        total = add_in_any_order(total, load_f32(gate, j))
    mean = total / np.float32(count)
    squares = np.float32(0)
    for j in range(count):
        centred = load_f32(gate, j) - mean
        squares = add_in_any_order(squares, centred * centred)
    scale = np.float32(1) / square_root_f32(squares / np.float32(count) + _VARIANCE_OFFSET)
    for j in range(count):
        value = (load_f32(gate, j) - mean) * scale * load_f32(weights, j) + load_f32(bias, j)
        store_f32(gate, j, value)


@compiled
def _copy(target: Pointer, source: Pointer, count: int) -> None:
    for j in range(count):
        store_f32(target, j, load_f32(source, j))


@compiled
def _limited(value: Any, limit: Any) -> Any:  # Any: float32 of Numba's
    """A float32 whose absolute value is limited."""
    value = limit if value > limit else value
    return -limit if value < -limit else value


@compiled
def _update_cell(
    cell: Pointer, forget: Pointer, update: Pointer, candidate: Pointer, limit: float, width: int
) -> None:
    """The cell state after a step; without an input gate (0) the forgotten part is replaced."""
    if update != 0:
        for j in range(width):
            retained = load_f32(forget, j) * load_f32(cell, j)
            value = retained + load_f32(update, j) * load_f32(candidate, j)
            store_f32(cell, j, _limited(value, limit))
    else:
        for j in range(width):
            share = load_f32(forget, j)
            value = share * load_f32(cell, j) + (np.float32(1) - share) * load_f32(candidate, j)
            store_f32(cell, j, _limited(value, limit))


def _make_let_out(isa: Isa) -> LetOut:
    """Make the function that gives the output state of a step."""
    product, panel = make_product(isa), PANEL * isa.lanes

    @compiled
    def let_out(hidden: Pointer, passed: Pointer, gate: Pointer, args: int) -> None:
        """Apply the output gate, and the projection if there is one."""
        call = _read(args)
        for j in range(call.width):
            store_f32(passed, j, load_f32(passed, j) * load_f32(gate, j))
        if call.projection == 0:
            _copy(hidden, passed, call.width)
            return
        panels = call.out_line // panel
        product(hidden, call.projection_bias, call.projection, passed, call.cells, panels, 0)
        for j in range(call.outputs):
            store_f32(hidden, j, _limited(load_f32(hidden, j), call.projection_clip))

    return let_out


def _make_step(lanes: int, activation: str) -> tuple[Activate, Step]:
    """Make the functions that activate a row, and that make a step of the gates' sums."""
    activate_vector = make_activate(lanes, activation)
    sigmoid_vector = make_activate(lanes, "SIGMOID")

    @compiled
    def activate(target: Pointer, source: Pointer, width: int) -> None:
        for j in range(0, width, lanes):
            activate_vector(target + j * 4, source + j * 4)

    @compiled
    def sigmoid(gate: Pointer, width: int) -> None:
        for j in range(0, width, lanes):
            sigmoid_vector(gate + j * 4, gate + j * 4)

    @compiled
    def step(gates: Pointer, cell: Pointer, args: int) -> None:
        """Compute the cell state and the output from the sums of the gates."""
        call = _read(args)
        peephole, norm_weights, norm_bias = call.peephole, call.norm_weights, call.norm_bias
        cells, pitch = call.cells, call.width * 4
        forget = (call.num_gates - 3) * pitch
        candidate, last = forget + pitch, forget + 2 * pitch
        if peephole != 0:
            for at in range(0, forget + 1, pitch):
                _add_weighted(gates + at, peephole + at, cell, cells)
        if norm_weights != 0:
            for at in range(0, last, pitch):
                _normalize(gates + at, norm_weights + at, norm_bias + at, cells)
        sigmoid(gates, candidate // 4)
        activate(gates + candidate, gates + candidate, call.width)
        update = gates if call.num_gates == 4 else 0
        _update_cell(cell, gates + forget, update, gates + candidate, call.cell_clip, call.width)
        if peephole != 0:
            _add_weighted(gates + last, peephole + last, cell, cells)
        if norm_weights != 0:
            _normalize(gates + last, norm_weights + last, norm_bias + last, cells)
        sigmoid(gates + last, call.width)

    return activate, step


def make(isa: Isa, activation: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the batches."""
    activate, step = _make_step(isa.lanes, activation)
    let_out, product, panel = _make_let_out(isa), make_product(isa), PANEL * isa.lanes

    def lstm_f32(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        num_gates, cells, width, outputs = call.num_gates, call.cells, call.width, call.outputs
        gates = call.scratch + thread_of(shares) * call.scratch_pitch
        line, panels = call.line, call.line // panel
        cell = gates + line * 4
        passed = cell + width * 4
        hidden = passed + width * 4
        first, last = share_items(call.batches, shares, num_shares)
        for batch in range(first, last):
            for j in range(width):
                store_f32(cell, j, np.float32(0))
            _copy(cell, call.cell_state_in + batch * cells * 4, cells)
            _copy(hidden, call.output_state_in + batch * outputs * 4, outputs)
            for time in range(call.times):
                row = batch * call.batch_rows + time * call.time_rows
                share = call.share + row * line * 4
                product(gates, share, call.recurrent, hidden, outputs, panels, 0)
                step(gates, cell, args)
                activate(passed, cell, width)
                let_out(hidden, passed, gates + (num_gates - 1) * width * 4, args)
                _copy(call.output + row * outputs * 4, hidden, outputs)
            _copy(call.output_state_out + batch * outputs * 4, hidden, outputs)
            _copy(call.cell_state_out + batch * cells * 4, cell, cells)

    return lstm_f32
