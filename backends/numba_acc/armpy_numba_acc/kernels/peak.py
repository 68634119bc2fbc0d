"""As many multiplications and additions as the processor can do, to compare kernels with."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,misc,untyped-decorator"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.pointers import load_i64, store_i64
from armpy_numba_acc.llvm.vectors import F32, I32, I64, fma, load, store, vector
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("memory", "repeats", "num_operations")
"""Address of 4096 bytes; how often; the last one is written."""

_TOTALS = 10
"""Sums that do not wait for each other: enough to hide how long one instruction takes."""


def make(isa: Isa, kind: str):
    """Make the kernel for products of ``f32`` or of bytes (``u8``)."""
    is_float = kind == "f32"
    element = vector(F32 if is_float else I32, isa.lanes)
    dots = dot_products(isa)
    num_operations = _TOTALS * 2 * isa.lanes * (1 if is_float else 4)

    @intrinsic
    def multiply(typingctx, memory, repeats):
        signature = types.void(types.int64, types.int64)

        def generate(context, builder, signature, args):
            memory, repeats = args
            x = load(builder, memory, element, I64(0))
            y = load(builder, memory, element, I64(1))
            if not is_float:
                y = dots.weights(builder, memory, 1)
                x = dots.elements(builder, x)
            kinds = [element] * _TOTALS
            totals = [cgutils.alloca_once(builder, kind) for kind in kinds]
            for number, total in enumerate(totals):
                builder.store(load(builder, memory, element, I64(2 + number)), total)
            with cgutils.for_range(builder, repeats):
                for total in totals:
                    before = builder.load(total)
                    if is_float:
                        after = fma(builder, before, x, y)
                    else:
                        after = dots.add(builder, before, x, y)
                    builder.store(after, total)
            for number, total in enumerate(totals):
                store(builder, builder.load(total), memory, I64(2 + number))
            return context.get_dummy_value()

        return signature, generate

    def peak(args, thread, num_threads):
        repeats = load_i64(args, 1)
        multiply(load_i64(args, 0), repeats)
        store_i64(args, 2, repeats * num_operations)

    return peak
