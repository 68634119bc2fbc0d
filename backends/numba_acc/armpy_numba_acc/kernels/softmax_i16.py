"""Exponentials of rows of 16-bit elements divided by their sums, in fixed point."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.fixed_point import limited, rescaled
from armpy_numba_acc.llvm.pointers import load_i16, load_i64, store_i16
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = (
    "input",
    "output",
    "rows",
    "length",
    "exponentials",
    "reciprocals",
    "multiplier",
    "shift",
)
"""Tables have 513 samples of 16 bits; multiplier and shift take differences to steps of the
exponentials' argument."""


@njit(error_model="numpy")
def _interpolated(table, argument):
    """The value of a table's function at a 16-bit argument."""
    index = (argument >> 7) + 256
    sample = load_i16(table, index)
    # A slope wraps in 16 bits, as the reference's does.
    slope = ((load_i16(table, index + 1) - sample + 32768) & 65535) - 32768
    return sample + ((slope * (argument & 127) + 64) >> 7)


@njit(error_model="numpy")
def _exponential(element, largest, table, multiplier, shift):
    """The exponential of an element, with 15 fraction bits."""
    argument = rescaled(element - largest, multiplier, shift) + 32767
    return _interpolated(table, limited(argument, -32768, 32767))


def make(isa: Isa):
    """Make the kernel; threads share the rows.

    References
    ----------
    TFLite reference kernel ``softmax.h`` (``SoftmaxInt16``).
    """

    def softmax_i16(args, thread, num_threads):
        rows, length = load_i64(args, 2), load_i64(args, 3)
        exponentials, reciprocals = load_i64(args, 4), load_i64(args, 5)
        multiplier, shift = load_i64(args, 6), load_i64(args, 7)
        first, last = share_items(rows, thread, num_threads)
        for row in range(first, last):
            source = load_i64(args, 0) + 2 * row * length
            target = load_i64(args, 1) + 2 * row * length
            largest = -32768
            for i in range(length):
                largest = max(largest, load_i16(source, i))
            total = 0
            for i in range(length):
                element = load_i16(source, i)
                value = _exponential(element, largest, exponentials, multiplier, shift)
                store_i16(target, i, value)
                total += value
            total = min(total, (1 << 31) - 1)
            right = 0  # bits of the sum in front of its last one
            while (total >> right) > 1:
                right += 1
            # One plus a fraction of 15 bits is the sum divided by its highest power of two.
            fraction = ((total << (30 - right)) + (1 << 13)) >> 14
            argument = limited(fraction - (1 << 15) - (1 << 16), -32768, 32767)
            inverse = _interpolated(reciprocals, argument)
            for i in range(length):
                product = load_i16(target, i) * inverse + ((1 << right) >> 1)
                store_i16(target, i, limited(product >> right, 0, 32767))

    return softmax_i16
