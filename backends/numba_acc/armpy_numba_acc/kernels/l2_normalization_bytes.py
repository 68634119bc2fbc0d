"""L2 normalisation of rows of bytes, in fixed point."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.fixed_functions import inverse_square_root, multiplied_high
from armpy_numba_acc.llvm.arithmetic.fixed_point import halved, limited
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_u8, store_u8
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.rows import L2NormalizationBytes
from armpy_numba_acc.machine.isa import Isa

_FRACTION_BITS = 7


def make(isa: Isa, is_signed: int) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows.

    Reference: TFLite reference kernels ``l2normalization.h``, ``integer_ops/l2normalization.h``.
    """
    read = reader(L2NormalizationBytes)
    later_bits = _FRACTION_BITS if is_signed else 0

    def l2_normalization_bytes(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length, zero_point = call.length, call.zero_point
        first, last = share_items(call.rows, shares, num_shares)
        for row in range(first, last):
            source, target = call.source + row * length, call.target + row * length
            total = 0
            for i in range(length):
                value = load_u8(source, i) - zero_point
                total += value * value
            multiplier, shift = inverse_square_root(total)
            shift += later_bits
            left = max(shift, 0) if is_signed else _FRACTION_BITS
            right = max(-shift, 0)
            for i in range(length):
                value = (load_u8(source, i) - zero_point) << left
                result = halved(multiplied_high(value, multiplier), right)
                store_u8(target, i, limited(result + 128, 0, 255))

    return l2_normalization_bytes
