"""Softmax and log-softmax of rows of bytes, in fixed point."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.fixed_functions import (
    leading_zeros,
    logarithm,
    multiplied_high,
    one_over_one_plus,
)
from armpy_numba_acc.llvm.arithmetic.fixed_point import halved, limited, rescaled
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import load_i32, load_u8, store_i16, store_i32, store_u8
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import SOFTMAX_ROWS, SOFTMAX_SCRATCH_BYTES, SoftmaxBytes
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.byte_table import byte_table_definition
from armpy_numba_acc.tiles.elementwise.loop import compute_elements

_SUM_INTEGER_BITS = 12
_LOG_SHIFT = 22
_LONG = 96
"""Rows of so many bytes look their results up in a table of their own."""


@compiled
def _largest(row: Pointer, length: int) -> int:
    largest = 0
    for i in range(length):
        largest = max(largest, load_u8(row, i))
    return largest


@compiled
def _total(row: Pointer, length: int, largest: int, summands: Pointer) -> int:
    """The sum of a row's exponentials, as 31 bits hold it."""
    total = 0
    for i in range(length):
        total += load_i32(summands, largest - load_u8(row, i))
    return min(total, (1 << 31) - 1)


def make(isa: Isa, function: str, written: str) -> LinkedKernel | Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows.

    Reference: TFLite reference kernels ``softmax.h``, ``log_softmax.h``.
    """
    read = reader(SoftmaxBytes)
    is_log, is_wide = function == "log_softmax", written == "i16"
    bits = 16 if is_wide else 8
    store, lowest, highest = (
        (store_i16, -(1 << 15), (1 << 15) - 1) if is_wide else (store_u8, 0, 255)
    )
    size = bits // 8

    @compiled
    def quotient(difference: int, values: Pointer, inverse: int, shift: int) -> int:
        product = multiplied_high(load_i32(values, difference), inverse)
        return min(halved(product, shift) + lowest, highest)

    @compiled
    def share(difference: int, values: Pointer, log_sum: int, least: int) -> int:
        result = halved(load_i32(values, difference) - log_sum, _LOG_SHIFT)
        return limited(result + highest, lowest, highest) if -difference > least else lowest

    compute = share if is_log else quotient

    @compiled
    def begin_rows(args: int, first: int, count: int, rows: Pointer) -> None:
        """Note of some rows the largest byte, and what results are computed with."""
        call = read(args)
        length, summands = call.length, call.summands
        for number in range(count):
            source = call.source + (first + number) * length
            largest = _largest(source, length)
            total = _total(source, length, largest, summands)
            if is_log:
                factor = logarithm(total, _SUM_INTEGER_BITS)
                least = rescaled(factor - (1 << 31), call.multiplier, call.shift)
                other = max(-call.radius - 1, least)
            else:
                headroom = leading_zeros(total)
                factor = (total << headroom) - (1 << 31)
                other = _SUM_INTEGER_BITS - headroom + 31 - bits
            store_i32(rows, number, largest)
            store_i32(rows, SOFTMAX_ROWS + number, factor)
            store_i32(rows, 2 * SOFTMAX_ROWS + number, other)
        if not is_log:  # in a loop of its own, which computes several rows at a time
            for number in range(SOFTMAX_ROWS, SOFTMAX_ROWS + count):
                store_i32(rows, number, one_over_one_plus(load_i32(rows, number)))

    def softmax_bytes(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length, values = call.length, call.values
        table = call.scratch + SOFTMAX_SCRATCH_BYTES * thread_of(shares)
        rows = table + 256
        first, last = share_items(call.rows, shares, num_shares)
        for begin in range(first, last, SOFTMAX_ROWS):
            count = min(SOFTMAX_ROWS, last - begin)
            begin_rows(args, begin, count, rows)
            for number in range(count):
                source = call.source + (begin + number) * length
                target = call.target + (begin + number) * length * size
                largest = load_i32(rows, number)
                factor = load_i32(rows, SOFTMAX_ROWS + number)
                other = load_i32(rows, 2 * SOFTMAX_ROWS + number)
                if is_wide or length < _LONG:
                    for i in range(length):
                        store(
                            target, i, compute(largest - load_u8(source, i), values, factor, other)
                        )
                else:
                    for byte in range(largest + 1):
                        store_u8(table, byte, compute(largest - byte, values, factor, other))
                    compute_elements(source, table, 0, target, length, 0)

    return LinkedKernel(softmax_bytes, byte_table_definition(isa))
