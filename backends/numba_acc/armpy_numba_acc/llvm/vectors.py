"""Vector instructions in LLVM's language, for the generators of micro-kernels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()


def intrinsic(builder, name, result, *arguments):
    """A function of LLVM's own."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)


def vector(element, lanes):
    """A vector type."""
    return ir.VectorType(element, lanes)


def suffix(kind):
    """How LLVM's intrinsics name a vector type."""
    letter = "f" if kind.element in (F32, F64) else "i"
    width = 8 * _align(kind) if letter == "f" else kind.element.width
    return f"v{kind.count}{letter}{width}"


def splat(builder, value, lanes):
    """A vector whose every element is one scalar."""
    kind = vector(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    zeros = ir.Constant(vector(I32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def at(builder, address, kind, index=None):
    """Pointer to element `index` of an array of `kind` at an address."""
    pointer = builder.inttoptr(address, kind.as_pointer())
    return pointer if index is None else builder.gep(pointer, (index,))


def load(builder, address, kind, index=None, align=None):
    """Load a scalar or a vector that is aligned to its elements only, or to `align` bytes."""
    return builder.load(at(builder, address, kind, index), align=align or _align(kind))


def store(builder, value, address, index=None):
    """Store a scalar or a vector that is aligned to its elements only."""
    builder.store(value, at(builder, address, value.type, index), align=_align(value.type))


def prefetch(builder, address):
    """Bring a line of memory to the second level of the cache."""
    kind = I8.as_pointer()
    function = intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), kind, I32, I32, I32)
    builder.call(function, (at(builder, address, I8), I32(0), I32(2), I32(1)))


def _align(kind):
    """Bytes that every element is aligned to."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.DoubleType):
        return 8
    return 4 if isinstance(element, ir.FloatType) else element.width // 8


def fma(builder, x, y, z):
    """``x * y + z`` in one rounding where the processor has it, else in two."""
    name = f"llvm.fmuladd.{suffix(x.type)}"
    return builder.call(intrinsic(builder, name, x.type, x.type, x.type, x.type), (x, y, z))


def extreme(builder, name, x, y):
    """Element by element ``minnum`` or ``maxnum``; of integers ``smin``, ``smax``, ``umin``, ...

    Notes
    -----
    For NaN in `x` floats give `y`. A comparison and a choice, which are one instruction on x86;
    LLVM's own minnum is three, as it minds NaN in `y`.
    """
    if name in ("minnum", "maxnum"):
        chosen = builder.fcmp_ordered("<" if name == "minnum" else ">", x, y)
        return builder.select(chosen, x, y)
    function = intrinsic(builder, f"llvm.{name}.{suffix(x.type)}", x.type, x.type, x.type)
    return builder.call(function, (x, y))


def lane_mask(builder, count, lanes):
    """Which lanes lie below a number."""
    numbers = ir.Constant(vector(I32, lanes), list(range(lanes)))
    limit = splat(builder, builder.trunc(count, I32), lanes)
    return builder.icmp_signed("<", numbers, limit)


def masked_store(builder, value, address, mask):
    """Store the lanes of a vector that a mask names."""
    kind = value.type
    pointer = kind.as_pointer()
    function = intrinsic(
        builder,
        f"llvm.masked.store.{suffix(kind)}.p0",
        ir.VoidType(),
        kind,
        pointer,
        I32,
        mask.type,
    )
    builder.call(function, (value, at(builder, address, kind), I32(_align(kind)), mask))


def masked_load(builder, address, kind, mask):
    """Load the lanes that a mask names; the others are 0."""
    function = intrinsic(
        builder,
        f"llvm.masked.load.{suffix(kind)}.p0",
        kind,
        kind.as_pointer(),
        I32,
        mask.type,
        kind,
    )
    zero = ir.Constant(kind, None)
    return builder.call(function, (at(builder, address, kind), I32(_align(kind)), mask, zero))
