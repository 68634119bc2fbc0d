"""bfloat16 in LLVM's language: dot products, and conversion from and to float32.

Notes
-----
Vectors of bfloat16 are handed around as vectors of 16-bit integers.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import F32, I16, I32, intrinsic, vector


class _Bfloat16(ir.Type):
    """LLVM's type, which llvmlite does not have."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bfloat16)

    def __hash__(self) -> int:
        return hash(_Bfloat16)


_BF16 = _Bfloat16()


def widened(builder, halves):
    """The same numbers in float32."""
    bits = builder.zext(halves, vector(I32, halves.type.count))
    shifted = builder.shl(bits, ir.Constant(bits.type, [16] * bits.type.count))
    return builder.bitcast(shifted, vector(F32, bits.type.count))


def narrowed(builder, values):
    """The nearest numbers, ties to even; what is too small for normal float32 becomes 0."""
    halves = builder.fptrunc(values, vector(_BF16, values.type.count))
    return builder.bitcast(halves, vector(I16, values.type.count))


def add_products(builder, total, x, y):
    """Add two products to each lane of float32.

    Parameters
    ----------
    total : vector of float32
        As long as a register.
    x, y : vectors of int32
        Two numbers in each lane.

    Notes
    -----
    Both products are added up before they are added to `total`; subnormal numbers count as 0.
    """
    pairs = vector(_BF16, 2 * total.type.count)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * total.type.count}"
    function = intrinsic(builder, name, total.type, total.type, pairs, pairs)
    return builder.call(function, (total, builder.bitcast(x, pairs), builder.bitcast(y, pairs)))
