"""Long short-term memory (LSTM) in integers, over sequences."""

from __future__ import annotations

from collections.abc import Callable

from numba import int32, int64

from armpy_numba_acc.llvm.arithmetic.fixed_point import halved, limited, rescaled
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i16,
    store_u8,
)
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import first_share
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.recurrent import LstmQ8
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, has_input_gate: int) -> Callable[[int, int, int], None]:
    """Make the kernel; one thread runs it.

    Reference: TFLite ``kernels/lstm_eval.cc`` (``EvalInteger8x8_16``).
    """
    read = reader(LstmQ8)
    num_gates = 4 if has_input_gate else 3
    forget_gate = 1 if has_input_gate else 0

    @compiled
    def dot(values: Pointer, weights: Pointer, count: int, bias: int) -> int:
        total = int32(bias)
        for k in range(count):
            total += int32(load_u8(values, k)) * int32(load_i8(weights, k))
        result: int = int64(total)
        return result

    @compiled
    def saturated(value: int) -> int:
        return limited(value, -32768, 32767)

    @compiled
    def find(table: Pointer, value: int) -> int:
        result: int = int64(load_i16(table, value + 32768))
        return result

    def lstm_q8(args: int, shares: int, num_shares: int) -> None:
        if first_share(shares) > 0:
            return
        call = read(args)
        inputs, cells, gates = call.inputs, call.cells, call.scratch
        for batch in range(call.batches):
            hidden = call.output_state_out + batch * cells
            cell = call.cell_state_out + batch * cells * 2
            for j in range(cells):
                store_u8(hidden, j, load_u8(call.output_state_in + batch * cells, j))
                store_i16(cell, j, load_i16(call.cell_state_in + batch * cells * 2, j))
            for time in range(call.times):
                row = batch * call.batch_rows + time * call.time_rows
                data = call.source + row * inputs
                line = call.weights
                for gate in range(num_gates):
                    table = call.tanh if gate == forget_gate + 1 else call.sigmoid
                    pair = call.multipliers + gate * 32
                    from_input, input_shift = load_i64(pair, 0), load_i64(pair, 1)
                    from_output, output_shift = load_i64(pair, 2), load_i64(pair, 3)
                    for j in range(cells):
                        at = gate * cells + j
                        share = dot(data, line, inputs, load_i32(call.biases, 2 * at))
                        line += inputs
                        total = saturated(rescaled(share, from_input, input_shift))
                        share = dot(hidden, line, cells, load_i32(call.biases, 2 * at + 1))
                        line += cells
                        total = saturated(total + rescaled(share, from_output, output_shift))
                        store_i16(gates, at, find(table, total))
                for j in range(cells):
                    forget = int64(load_i16(gates, forget_gate * cells + j))
                    candidate = int64(load_i16(gates, (forget_gate + 1) * cells + j))
                    passed = int64(load_i16(gates, (forget_gate + 2) * cells + j))
                    update = int64(load_i16(gates, j)) if has_input_gate else 32767 - forget
                    value = halved(forget * int64(load_i16(cell, j)), 15)
                    value = saturated(value + halved(update * candidate, call.cell_shift))
                    if call.cell_clip > 0:
                        value = limited(value, -call.cell_clip, call.cell_clip)
                    store_i16(cell, j, value)
                    value = passed * find(call.cell_tanh, value)
                    value = rescaled(value, call.to_hidden, call.to_hidden_shift) + call.zero_point
                    store_u8(hidden, j, limited(value, 0, 255))
                for j in range(cells):
                    store_u8(call.output + row * cells, j, load_u8(hidden, j))

    return lstm_q8
