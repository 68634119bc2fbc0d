"""Looks bytes up in a table of 256."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.values import Code, choose
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.span import SPAN_NAME, SPAN_TYPE, for_whole_vectors

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_WIDE = ir.VectorType(_I8, 64)


def byte_table_definition(isa: Isa) -> str:
    """Write the function that looks up neighbouring bytes.

    Parameters
    ----------
    isa : Isa

    Returns
    -------
    str
        In LLVM's language, with the arguments of `span_definition`'s: the first address is
        that of the bytes, the second that of the table; the last one is not used.
    """
    module = ir.Module()
    function = ir.Function(module, SPAN_TYPE, SPAN_NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    input_, table, _, output, count, _ = function.args
    quarters = []
    if isa.has_byte_permute:
        quarters = [vectors.load(builder, table, _WIDE, _I64(number)) for number in range(4)]

    def compute(lanes, index, mask):
        place, target = builder.add(input_, index), builder.add(output, index)
        if not isa.has_byte_permute:
            number = builder.zext(vectors.load(builder, place, _I8), _I64)
            vectors.store(builder, vectors.load(builder, table, _I8, number), target)
        elif mask is None:
            found = _permuted(builder, quarters, vectors.load(builder, place, _WIDE))
            vectors.store(builder, found, target)
        else:
            found = _permuted(builder, quarters, vectors.masked_load(builder, place, _WIDE, mask))
            vectors.masked_store(builder, found, target, mask)

    for_whole_vectors(isa, builder, 64 if isa.has_byte_permute else 1, count, compute)
    builder.ret_void()
    return str(module)


def _permuted(builder, quarters, numbers):
    """The table's entries of 64 bytes: from one half or the other by the top bit."""
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    permute = vectors.intrinsic(builder, name, _WIDE, _WIDE, _WIDE, _WIDE)
    low = builder.call(permute, (quarters[0], numbers, quarters[1]))
    high = builder.call(permute, (quarters[2], numbers, quarters[3]))
    return choose(
        Code(builder).of(numbers) < 0, Code(builder).of(high), Code(builder).of(low)
    ).value
