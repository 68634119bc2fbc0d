"""Elements that are left to the C library, as too few need what vectors would take for them."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.values import F64, Value
from armpy_numba_acc.llvm.vectors import F32, I64


def from_library(name: str, x: Value, mask: Value, others: Value) -> Value:
    """A function of the C library where a mask is set, and what is given elsewhere.

    Parameters
    ----------
    name : str
        Of a function of float64, such as ``sin``.
    x : Value
        float32.
    mask : Value
        Vectors where no bit is set skip all this.
    others : Value
        float32.
    """
    builder, count = x.code.builder, x.count
    kind = ir.IntType(count)
    given, result = (cgutils.alloca_once(builder, x.value.type) for _ in range(2))
    elements = [builder.bitcast(place, F32.as_pointer()) for place in (given, result)]
    builder.store(others.value, result)
    bits = builder.bitcast(mask.value, kind)
    with builder.if_then(builder.icmp_unsigned("!=", bits, kind(0)), likely=False):
        builder.store(x.value, given)
        with cgutils.for_range(builder, I64(count)) as loop:
            shifted = builder.lshr(bits, _resized(builder, loop.index, kind))
            with builder.if_then(builder.trunc(shifted, vectors.I1) if count > 1 else shifted):
                source, target = (builder.gep(place, (loop.index,)) for place in elements)
                function = vectors.intrinsic(builder, name, F64, F64)
                wide = builder.call(function, (builder.fpext(builder.load(source), F64),))
                builder.store(builder.fptrunc(wide, x.element), target)
    return x.of(builder.load(result))


def _resized(builder, number, kind):
    """An int64 as an integer of another width."""
    return builder.trunc(number, kind) if kind.width < I64.width else number
