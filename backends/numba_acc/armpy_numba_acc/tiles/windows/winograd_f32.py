"""Winograd's algorithm for 3x3 convolutions of float32: transforms and products of tiles.

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

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I64, Code, CodeValue, at_least, at_most, vector
from armpy_numba_acc.machine.calls.winograd import WinogradF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.winograd_walk import product_tile

Pairs = tuple[float, ...]
"""The positive numbers of the pairs that a line is transformed for."""


def _input_line(pairs: Pairs, elements: Sequence[CodeValue]) -> list[CodeValue]:
    whole = _product_of_squares(pairs)
    values = [_weighted(whole, elements[:-1:2])]
    for pair in pairs:
        factors = _product_of_squares([other for other in pairs if other != pair])
        even = _weighted(factors, elements[2::2])
        odd = _weighted(factors, elements[1:-2:2])
        values += [_added(pair, odd, even), _added(-pair, odd, even)]
    return [*values, _weighted(whole, elements[1::2])]


def _output_line(pairs: Pairs, values: Sequence[CodeValue]) -> list[CodeValue]:
    """A line of the output from the products at all points."""
    opposite = list(zip(values[1:-1:2], values[2:-1:2], strict=True))
    sums, differences = [x + y for x, y in opposite], [x - y for x, y in opposite]
    size = 2 * len(pairs)
    line = []
    for power in range(size):
        total = {0: values[0], size - 1: values[-1]}.get(power)
        for pair, part in zip(pairs, differences if power % 2 else sums, strict=True):
            total = _added(pair**power, part, total)
        line += [] if total is None else [total]
    return line


def _weighted(factors: Sequence[float], values: Sequence[CodeValue]) -> CodeValue:
    """A sum of values; the last factor is 1."""
    total = values[-1]
    for factor, value in zip(factors[:-1], values[:-1], strict=True):
        total = _added(factor, value, total)
    return total


def _added(factor: float, value: CodeValue, total: CodeValue | None) -> CodeValue:
    """``factor * value + total``; None is not a total yet."""
    number = float(np.float32(factor))
    if total is None:
        return value.like(number) * value
    if abs(factor) == 1:
        return total + value if factor == 1 else total - value
    return value.like(number).times_plus(value, total)


def _product_of_squares(pairs: Sequence[float]) -> Sequence[float]:
    """Coefficients of the product of all ``x - pair**2``, the lowest power first."""
    return (
        [float(coefficient) for coefficient in np.poly([pair**2 for pair in pairs])[::-1]]
        if pairs
        else [1.0]
    )


@cache
def input_tile(isa: Isa, down: Pairs, right: Pairs) -> Primitive:
    """Make `transform_input` of `Steps`."""
    kind = vector(F32, isa.lanes)
    height, width = 2 * len(down) + 2, 2 * len(right) + 2

    @primitive(NOTHING, *(WORD,) * 4)
    def transform(
        code: Code, table: CodeValue, at: CodeValue, target: CodeValue, pitch: CodeValue
    ) -> None:
        columns = []
        for x in range(width):
            places = [table.load(I64, y * width + x) for y in range(height)]
            columns.append(_input_line(down, [(place + at).load(kind) for place in places]))
        for y in range(height):
            line = _input_line(right, [column[y] for column in columns])
            for x, value in enumerate(line):
                (target + pitch * (y * width + x)).store(value)

    return transform


@cache
def multiply_tile(isa: Isa, rows: int, vectors: int) -> Primitive:
    """Make `multiply` of `Steps`."""
    kind = vector(F32, isa.lanes)

    def splat(pointer: CodeValue, number: CodeValue) -> CodeValue:
        return pointer.load(F32, number).splat(isa.lanes)

    return product_tile(rows, vectors, kind, kind, splat, CodeValue.times_plus)


@cache
def output_tile(isa: Isa, down: Pairs, right: Pairs) -> Primitive:
    """Make `transform_output` of `Steps`: ``clamp(sum + bias + residual, low, high)``."""
    kind = vector(F32, isa.lanes)
    height, width = 2 * len(down) + 2, 2 * len(right) + 2

    @primitive(NOTHING, *(WORD,) * 6)
    def transform(
        code: Code,
        args: CodeValue,
        products: CodeValue,
        pitch: CodeValue,
        outputs: CodeValue,
        residuals: CodeValue,
        first: CodeValue,
    ) -> None:
        call, at = CallFields(WinogradF32, args), first * 4
        lowest, highest = call.low.splat(isa.lanes), call.high.splat(isa.lanes)
        columns = []
        for x in range(width):
            places = [products + pitch * (y * width + x) for y in range(height)]
            columns.append(_output_line(down, [place.load(kind) for place in places]))
        addend = (call.bias + at).load(kind)
        for y in range(height - 2):
            line = _output_line(right, [column[y] for column in columns])
            for x, value in enumerate(line):
                pixel = y * (width - 2) + x
                place, other = (table.load(I64, pixel) + at for table in (outputs, residuals))
                total = at_least(lowest, value + addend + other.load(kind))
                place.store(at_most(highest, total))

    return transform
