"""Makes bytes of floats."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.quantize_u8 import VECTORS, quantize_block

ARGUMENTS = ("input", "output", "count", "zero_point", "flip", "scale", "inverse")
"""`zero_point` is that of the unsigned output, whose bytes are changed by `flip` in the end;
`inverse` is 1 by the scale. Both are float32."""


def make(isa: Isa):
    """Make the kernel; threads share the elements, of which there are a register of bytes or more.

    Notes
    -----
    The last block of a share overlaps the one in front, which may be another thread's: both
    write the same.
    """
    block = quantize_block(isa)
    size = VECTORS * isa.lanes

    def quantize_u8(args, thread, num_threads):
        source, target, count = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        zero_point, flip = load_i64(args, 3), load_i64(args, 4)
        scale, inverse = bits_to_f32(load_i64(args, 5)), bits_to_f32(load_i64(args, 6))
        begin, end = share(count, thread, num_threads)
        while begin < end:
            at = min(begin, end - size)
            block(source + 4 * at, target + at, zero_point, flip, scale, inverse)
            begin += size

    return quantize_u8
