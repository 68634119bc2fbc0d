"""Dot products of short rows of integers."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.llvm.vectors import I32, I64
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.span import load_elements


@cache
def make_short_dot(kinds: tuple[str, str], lanes: int):
    """Make the function for one pair of types.

    Parameters
    ----------
    kinds : (str, str)
        How the elements of both rows are stored.
    lanes : int
        How many are multiplied at once; what is left is multiplied one by one.

    Returns
    -------
    callable
        ``dot(first, second, count)`` for code that Numba compiles: addresses, and the number of
        elements, behind which nothing is read. Gives an int32, which wraps.
    """

    @intrinsic
    def dot(typingctx, first, second, count):
        signature = types.int32(types.int64, types.int64, types.int64)

        def generate(context, builder, signature, args):
            *rows, count = args
            sums = {}
            for width in (lanes, 1):
                kind = vectors.vector(I32, width)
                sums[width] = cgutils.alloca_once(builder, kind)
                builder.store(kind(None), sums[width])

            def add(width, index):
                values = (
                    Code(builder).of(load_elements(builder, row, kind, index, width))
                    for row, kind in zip(rows, kinds, strict=True)
                )
                product = next(values) * next(values)
                total = product.of(builder.load(sums[width])) + product
                builder.store(total.value, sums[width])

            whole = builder.and_(count, I64(-lanes))
            for width, start, end in ((lanes, I64(0), whole), (1, whole, count)):
                loop = cgutils.for_range_slice(builder, start, end, I64(width), inc=True)
                with loop as (index, _):
                    add(width, index)
            wide, single = builder.load(sums[lanes]), builder.load(sums[1])
            name = f"llvm.vector.reduce.add.{vectors.suffix(wide.type)}"
            total = builder.call(vectors.intrinsic(builder, name, I32, wide.type), (wide,))
            return builder.add(total, builder.extract_element(single, I32(0)))

        return signature, generate

    return dot


@cache
def make_line_dots(isa: Isa):
    """Make the function that multiplies one row of bytes with the rows of a panel.

    Parameters
    ----------
    isa : Isa

    Returns
    -------
    callable
        ``dots_of_panel(data, weights, steps, target)`` for code that Numba compiles: adds the sums
        of `steps` groups of four products to as many int32 as a register holds. `weights` are
        lines of `armpy_numba_acc.packing.weights_u8.lines_of_groups`.
    """
    products = dot_products(isa)

    @intrinsic
    def dots_of_panel(typingctx, data, weights, steps, target):
        signature = types.void(*(types.int64,) * 4)

        def generate(context, builder, signature, args):
            data, weights, steps, target = args
            kind = vectors.vector(I32, isa.lanes)
            total = cgutils.alloca_once(builder, kind)
            builder.store(vectors.load(builder, target, kind), total)
            with cgutils.for_range(builder, steps) as loop:
                word = vectors.load(builder, data, I32, loop.index, align=1)
                elements = products.elements(builder, vectors.splat(builder, word, isa.lanes))
                at = builder.mul(loop.index, I64(products.bytes_per_vector))
                line = products.weights(builder, builder.add(weights, at), 0)
                added = products.add(builder, builder.load(total), elements, line)
                builder.store(added, total)
            vectors.store(builder, builder.load(total), target)
            return context.get_dummy_value()

        return signature, generate

    return dots_of_panel
