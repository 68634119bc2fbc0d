"""Sums of neighbouring bytes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.vectors import I8, I32, I64
from armpy_numba_acc.machine.isa import Isa

_NAME = "armpy_byte_sum"
_TYPE = ir.FunctionType(I64, (I64, I64))


@intrinsic
def call_byte_sum(typingctx, address, count):
    """Sum of `count` unsigned bytes; whoever calls it links `define_byte_sum`."""
    return call_of(_NAME, _TYPE)


def define_byte_sum(module: ir.Module, isa: Isa) -> None:
    """Add the function to a module.

    Notes
    -----
    Nothing behind the bytes is read.
    """
    function = ir.Function(module, _TYPE, _NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    address, count = function.args
    lanes = isa.vector_bytes
    total = cgutils.alloca_once_value(builder, I64(0))

    def add(amount):
        builder.store(builder.add(builder.load(total), amount), total)

    whole = builder.and_(count, I64(-lanes))
    with cgutils.for_range_slice(builder, I64(0), whole, I64(lanes), inc=True) as (i, _):
        kind = vectors.vector(I8, lanes)
        add(_sum(builder, vectors.load(builder, builder.add(address, i), kind)))
    if isa.vector_bytes == 64:
        with builder.if_then(builder.icmp_signed("<", whole, count)):
            mask = vectors.lane_mask(builder, builder.sub(count, whole), lanes)
            place = builder.add(address, whole)
            add(_sum(builder, vectors.masked_load(builder, place, vectors.vector(I8, lanes), mask)))
    else:
        with cgutils.for_range_slice(builder, whole, count, I64(1), inc=True) as (i, _):
            add(builder.zext(vectors.load(builder, builder.add(address, i), I8), I64))
    builder.ret(builder.load(total))


def _sum(builder, value):
    """Sum of a vector's bytes."""
    wide = builder.zext(value, vectors.vector(I32, value.type.count))
    name = f"llvm.vector.reduce.add.{vectors.suffix(wide.type)}"
    return builder.zext(
        builder.call(vectors.intrinsic(builder, name, I32, wide.type), (wide,)), I64
    )


def byte_sum_definition(isa: Isa) -> str:
    """The function by itself, in LLVM's language."""
    module = ir.Module()
    define_byte_sum(module, isa)
    return str(module)
