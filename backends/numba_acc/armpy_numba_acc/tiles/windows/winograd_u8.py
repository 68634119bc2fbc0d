"""Winograd's algorithm for 3x3 convolutions of bytes, in integers: transforms and products.

Notes
-----
Tiles have two by two pixels, so that 4 outputs take 16 multiplications instead of 36. Filters are
transformed by twice the usual factors in each direction, which are integers then; the products'
sums are four times those of the convolution, and nothing is rounded. Elements are at most 255,
transformed ones 1020: 16 bits hold them, and pairs of products are added up in 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from armpy_numba_acc.llvm.arithmetic.dots import pair_products
from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I8, I16, I32, I64, Code, CodeValue, vector
from armpy_numba_acc.machine.calls.winograd import WinogradU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.finish.requantize import BytePacker, part_of
from armpy_numba_acc.tiles.finish.residual import ResidualSum
from armpy_numba_acc.tiles.windows.winograd_walk import product_tile


def _input_line(elements: Sequence[CodeValue]) -> list[CodeValue]:
    first, second, third, last = elements
    return [first - third, second + third, third - second, second - last]


def _output_line(values: Sequence[CodeValue]) -> list[CodeValue]:
    first, second, third, last = values
    return [first + second + third, second - third - last]


@cache
def input_tile(isa: Isa) -> Primitive:
    """Make `transform_input` of `Steps`."""
    kind = vector(I8, 2 * isa.lanes)

    @primitive(NOTHING, *(WORD,) * 4)
    def transform(
        code: Code, table: CodeValue, at: CodeValue, target: CodeValue, pitch: CodeValue
    ) -> None:
        columns = []
        for x in range(4):
            places = [table.load(I64, 4 * y + x) + at for y in range(4)]
            columns.append(_input_line([place.load(kind).unsigned(I16) for place in places]))
        for y in range(4):
            for x, value in enumerate(_input_line([column[y] for column in columns])):
                (target + pitch * (4 * y + x)).store(value)

    return transform


@cache
def multiply_tile(isa: Isa, rows: int, vectors: int) -> Primitive:
    """Make `multiply` of `Steps`: pairs of values times pairs of weights."""
    words, sums = vector(I16, 2 * isa.lanes), vector(I32, isa.lanes)

    def splat(pointer: CodeValue, number: CodeValue) -> CodeValue:
        return pointer.load(I32, number).splat(isa.lanes).bitcast(words)

    def add_product(value: CodeValue, weights: CodeValue, total: CodeValue) -> CodeValue:
        return total + pair_products(isa, value, weights)

    return product_tile(rows, vectors, words, sums, splat, add_product)


@cache
def output_tile(isa: Isa, made_for: WinogradU8) -> Primitive:
    """Make `transform_output` of `Steps`; of the record only the parameters matter."""
    lanes = isa.lanes
    kind = vector(I32, lanes)

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
        call = CallFields(WinogradU8, args)
        columns = []
        for x in range(4):
            places = [products + pitch * (4 * y + x) for y in range(4)]
            columns.append(_output_line([place.load(kind) for place in places]))
        bias = (call.bias + first * 4).load(kind)
        totals = [
            (value >> 2) + bias
            for y in range(2)
            for value in _output_line([column[y] for column in columns])
        ]
        places = [outputs.load(I64, pixel) + first for pixel in range(4)]
        others = [residuals.load(I64, pixel) + first for pixel in range(4)]
        packed = _elements(isa, made_for, call, first, totals, others)
        for pixel, place in enumerate(places):
            place.store(part_of(packed, pixel * lanes, lanes))

    return transform


def _elements(
    isa: Isa,
    made_for: WinogradU8,
    call: CallFields,
    first: CodeValue,
    totals: list[CodeValue],
    others: list[CodeValue],
) -> CodeValue:
    """Elements of four pixels, one after the other, of a vector of columns from `first` on.

    Parameters
    ----------
    others
        Addresses of what is added to them if there is a residual.
    """
    lanes, kind = isa.lanes, vector(F32, isa.lanes)
    scaling = ExactScaling(
        call.exact + first * 8,
        lanes,
        1,
        call.zero_point.narrowed(I32),
        has_negatives=bool(made_for.has_negatives),
        is_imprecise=bool(made_for.is_imprecise),
        has_large_scales=bool(made_for.has_large_scales),
    )
    scales, nudges = ((start + first * 4).load(kind) for start in (call.scales, call.nudges))
    steps = scaling.steps(totals, [scales] * 4, [nudges] * 4)
    missing, low, high = scaling.missing, call.low, call.high
    if made_for.has_residual:
        bounds = low.narrowed(I32), high.narrowed(I32)
        steps = ResidualSum(call.sum, lanes, missing, *bounds).steps(steps, others)
        missing = missing.like(0)
        low, high = (call.sum.load(I32, number).unsigned(I64) for number in (3, 4))
    packer = BytePacker(isa, missing, low, high, has_bounds=bool(made_for.has_bounds))
    return packer.elements(steps)
