"""Softmax of rows of 16-bit elements, in fixed point."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.fixed_point import limited, rescaled
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i16, store_i16
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import SoftmaxI16
from armpy_numba_acc.machine.isa import Isa


@compiled
def _interpolated(table: Pointer, argument: int) -> int:
    """The value of a table's function at a 16-bit argument."""
    index = (argument >> 7) + 256
    sample = load_i16(table, index)
    # A slope wraps in 16 bits, as the reference's does.
    slope = ((load_i16(table, index + 1) - sample + 32768) & 65535) - 32768
    return sample + ((slope * (argument & 127) + 64) >> 7)


@compiled
def _exponential(element: int, largest: int, table: Pointer, multiplier: int, shift: int) -> int:
    """The exponential of an element, with 15 fraction bits."""
    argument = rescaled(element - largest, multiplier, shift) + 32767
    return _interpolated(table, limited(argument, -32768, 32767))


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows.

    Reference: TFLite reference kernel ``softmax.h`` (``SoftmaxInt16``).
    """
    read = reader(SoftmaxI16)

    def softmax_i16(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length = call.length
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            source = call.source + 2 * row * length
            target = call.target + 2 * row * length
            largest = -32768
            for i in range(length):
                largest = max(largest, load_i16(source, i))
            total = 0
            for i in range(length):
                element = load_i16(source, i)
                value = _exponential(
                    element, largest, call.exponentials, call.multiplier, call.shift
                )
                store_i16(target, i, value)
                total += value
            total = min(total, (1 << 31) - 1)
            right = 0  # bits of the sum in front of its last one
            while (total >> right) > 1:
                right += 1
            # One plus a fraction of 15 bits is the sum divided by its highest power of two.
            fraction = ((total << (30 - right)) + (1 << 13)) >> 14
            argument = limited(fraction - (1 << 15) - (1 << 16), -32768, 32767)
            inverse = _interpolated(call.reciprocals, argument)
            for i in range(length):
                product = load_i16(target, i) * inverse + ((1 << right) >> 1)
                store_i16(target, i, limited(product >> right, 0, 32767))

    return softmax_i16
