"""Micro-kernels of 3x3 convolutions in float32 that multiply less.

Notes
-----
`m` neighbouring outputs of a filter with three taps are coefficients of a product of polynomials,
which is known from its values at ``m + 2`` points, each of which takes one multiplication. The
points are 0, infinity, and pairs of opposite numbers, whose sums and differences share what they
are made of; `m` is twice the number of pairs. In two dimensions columns are transformed, then rows.
With one pair 4 outputs take 16 multiplications instead of 36, with two 16 take 36 instead of 144.

References
----------
Winograd, "Arithmetic Complexity of Computations", 1980. Lavin, Gray, "Fast Algorithms for
Convolutional Neural Networks", 2016.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.vectors import F32, I64, extreme, fma, load, splat, store, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.walk import repeat


class _Lines:
    """Writes the code that transforms lines of vectors.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    pairs : tuple of float
        The positive numbers of the pairs.
    """

    def __init__(self, builder, pairs):
        self._builder = builder
        self._pairs = pairs

    def of_input(self, elements):
        """Values of a line of the input at all points."""
        whole = _product_of_squares(self._pairs)
        values = [self._weighted(whole, elements[:-1:2])]
        for pair in self._pairs:
            factors = _product_of_squares([other for other in self._pairs if other != pair])
            even = self._weighted(factors, elements[2::2])
            odd = self._weighted(factors, elements[1:-2:2])
            values += [self._add(pair, odd, even), self._add(-pair, odd, even)]
        return [*values, self._weighted(whole, elements[1::2])]

    def of_output(self, values):
        """A line of the output from the products at all points."""
        builder = self._builder
        halves = list(zip(values[1:-1:2], values[2:-1:2], strict=True))
        sums = [builder.fadd(x, y) for x, y in halves]
        differences = [builder.fsub(x, y) for x, y in halves]
        size = 2 * len(self._pairs)
        line = []
        for power in range(size):
            total = {0: values[0], size - 1: values[-1]}.get(power)
            parts = differences if power % 2 else sums
            for pair, part in zip(self._pairs, parts, strict=True):
                total = self._add(pair**power, part, total)
            line.append(total)
        return line

    def _weighted(self, factors, values):
        """A sum of values; the last factor is 1."""
        total = values[-1]
        for factor, value in zip(factors[:-1], values[:-1], strict=True):
            total = self._add(factor, value, total)
        return total

    def _add(self, factor, value, total):
        """``factor * value + total``; None is no total yet."""
        builder = self._builder
        if total is not None and abs(factor) == 1:
            return (builder.fadd if factor == 1 else builder.fsub)(total, value)
        number = ir.Constant(value.type, [float(np.float32(factor))] * value.type.count)
        return builder.fmul(number, value) if total is None else fma(builder, number, value, total)


def _product_of_squares(pairs):
    """Coefficients of the product of all ``x - pair**2``, the lowest power first."""
    return np.poly([pair**2 for pair in pairs])[::-1] if pairs else [1.0]


@cache
def input_tile(isa: Isa, down: tuple[float, ...], right: tuple[float, ...]):
    """Make ``transform(table, at, target, pitch)``.

    Notes
    -----
    `table` holds the address of each pixel that the tile reads, row by row; `at` is added to them.
    A vector of channels is transformed; its values are written `pitch` bytes from each other.
    """
    kind = vector(F32, isa.lanes)
    height, width = 2 * len(down) + 2, 2 * len(right) + 2

    @intrinsic
    def transform(typingctx, table, at, target, pitch):
        def generate(context, builder, signature, args):
            table, at, target, pitch = args
            columns = []
            for x in range(width):
                places = [load(builder, table, I64, I64(y * width + x)) for y in range(height)]
                elements = [load(builder, builder.add(place, at), kind) for place in places]
                columns.append(_Lines(builder, down).of_input(elements))
            for y in range(height):
                line = _Lines(builder, right).of_input([column[y] for column in columns])
                for x, value in enumerate(line):
                    offset = builder.mul(pitch, I64(y * width + x))
                    store(builder, value, builder.add(target, offset))
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 4), generate

    return transform


@cache
def product_tile(isa: Isa, rows: int, vectors: int):
    """Make ``multiply(values, weights, products, depth, pitch, product_pitch)``.

    Notes
    -----
    `rows` lines of `depth` values, `pitch` bytes from each other, times weights of which there are
    `vectors` for each value; the sums are written `product_pitch` bytes from each other.
    """
    kind = vector(F32, isa.lanes)

    @intrinsic
    def multiply(typingctx, values, weights, products, depth, pitch, product_pitch):
        def generate(context, builder, signature, args):
            values, weights, products, depth, pitch, product_pitch = args
            pointers = [builder.add(values, builder.mul(pitch, I64(r))) for r in range(rows)]

            def step(builder, number, totals):
                """One line of weights times one value of every row."""
                at = builder.mul(number, I64(vectors))
                line = [
                    load(builder, weights, kind, builder.add(at, I64(j))) for j in range(vectors)
                ]
                result = []
                for row, pointer in enumerate(pointers):
                    value = splat(builder, load(builder, pointer, F32, number), isa.lanes)
                    for j in range(vectors):
                        result.append(fma(builder, value, line[j], totals[row * vectors + j]))
                return result

            zeros = [ir.Constant(kind, None)] * (rows * vectors)
            totals = repeat(builder, depth, zeros, step)
            for row in range(rows):
                place = builder.add(products, builder.mul(product_pitch, I64(row)))
                for j in range(vectors):
                    store(builder, totals[row * vectors + j], place, I64(j))
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6), generate

    return multiply


@cache
def output_tile(isa: Isa, down: tuple[float, ...], right: tuple[float, ...]):
    """Make ``transform(products, pitch, bias, outputs, residuals, at, low, high)``.

    Notes
    -----
    `products` are `pitch` bytes from each other. `outputs` and `residuals` hold the address of each
    pixel, row by row; `at` is added to them. Writes ``clamp(sum + bias + residual, low, high)``.
    """
    kind = vector(F32, isa.lanes)
    height, width = 2 * len(down) + 2, 2 * len(right) + 2

    @intrinsic
    def transform(typingctx, products, pitch, bias, outputs, residuals, at, low, high):
        def generate(context, builder, signature, args):
            products, pitch, bias, outputs, residuals, at, low, high = args
            lowest, highest = splat(builder, low, isa.lanes), splat(builder, high, isa.lanes)
            columns = []
            for x in range(width):
                offsets = [builder.mul(pitch, I64(y * width + x)) for y in range(height)]
                values = [load(builder, builder.add(products, offset), kind) for offset in offsets]
                columns.append(_Lines(builder, down).of_output(values))
            addend = load(builder, builder.add(bias, at), kind)
            for y in range(height - 2):
                line = _Lines(builder, right).of_output([column[y] for column in columns])
                for x, value in enumerate(line):
                    pixel = I64(y * (width - 2) + x)
                    place, other = (
                        builder.add(load(builder, table, I64, pixel), at)
                        for table in (outputs, residuals)
                    )
                    total = builder.fadd(builder.fadd(value, addend), load(builder, other, kind))
                    clamped = extreme(builder, "maxnum", lowest, total)
                    store(builder, extreme(builder, "minnum", highest, clamped), place)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6, types.float32, types.float32), generate

    return transform
