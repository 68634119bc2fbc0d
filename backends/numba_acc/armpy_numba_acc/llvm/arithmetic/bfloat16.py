"""bfloat16: dot products, and conversion from and to float32.

Notes
-----
Vectors of bfloat16 are handed around as vectors of 16-bit integers.
"""

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.values import I16, I32, CodeValue, vector
from armpy_numba_acc.machine.isa import Isa


class _Bfloat16(ir.Type):  # type: ignore[misc]  # llvmlite has no types
    """LLVM's type, which llvmlite does not have."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bfloat16)

    def __hash__(self) -> int:
        return hash(_Bfloat16)


_BF16 = _Bfloat16()


def from_bfloat16(values: CodeValue) -> CodeValue:
    """The same numbers as float32."""
    return (values.unsigned(I32) << 16).as_float()


def to_bfloat16(values: CodeValue) -> CodeValue:
    """The nearest numbers, ties to even; numbers too small for normal float32 become 0."""
    return values.converted("fptrunc", _BF16).bitcast(vector(I16, values.count))


def add_pairs(isa: Isa, total: CodeValue, x: CodeValue, y: CodeValue) -> CodeValue:
    """Add two products to each lane of float32.

    Both products are added up before they are added to `total`; subnormal numbers count as 0.

    Parameters
    ----------
    total
        As long as a register.
    x, y
        Two numbers in each lane.
    """
    pairs = vector(_BF16, 2 * total.count)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * total.count}"
    if isa.has_paired_products:
        name = "llvm.aarch64.neon.bfdot.v4f32.v8bf16"
    return total.code.call(name, total.kind, total, x.bitcast(pairs), y.bitcast(pairs))


def add_paired(total: CodeValue, x: CodeValue, y: CodeValue) -> CodeValue:
    """Add products of two rows with two columns, four numbers deep.

    Reference: Arm's ``bfmmla``, which rounds to odd and takes subnormal numbers for 0.

    Parameters
    ----------
    total : CodeValue, vector of 4 float32
        Row by row.
    x, y : CodeValue, vectors of 16 bytes
        Four numbers of each row, and of each column.
    """
    numbers = vector(_BF16, 8)
    name = "llvm.aarch64.neon.bfmmla"
    return total.code.call(name, total.kind, total, x.bitcast(numbers), y.bitcast(numbers))
