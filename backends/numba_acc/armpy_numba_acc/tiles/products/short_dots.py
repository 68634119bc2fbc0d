"""Dot products of short rows of integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import I32, Code, CodeValue, suffix, vector
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import load_elements


@cache
def make_short_dot(formats: tuple[str, str], lanes: int) -> Callable[[Pointer, Pointer, int], int]:
    """Make the function for one pair of types.

    Parameters
    ----------
    formats
        How the elements of both rows are stored.
    lanes
        How many are multiplied at once; the rest is multiplied one by one.

    Returns
    -------
    callable
        ``dot(first, second, count)`` for code that Numba compiles: addresses, and the number of
        elements, after which nothing is read. Gives an int32, which wraps.
    """

    @primitive("int32", WORD, WORD, WORD)
    def dot(code: Code, first: CodeValue, second: CodeValue, count: CodeValue) -> CodeValue:
        def step(width: int) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
            def add(index: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                x, y = (
                    load_elements(row, name, index, width)
                    for row, name in zip((first, second), formats, strict=True)
                )
                return [totals[0] + x * y]

            return add

        whole = count & -lanes
        zeros = {width: code.constant(vector(I32, width)) for width in (lanes, 1)}
        (wide,) = loop(code, whole, [zeros[lanes]], step(lanes), by=lanes)
        (single,) = loop(code, count, [zeros[1]], step(1), start=whole)
        total = code.call(f"llvm.vector.reduce.add.{suffix(wide.kind)}", I32, wide)
        return total + single.at(0)

    return dot


@cache
def make_line_dots(isa: Isa) -> Callable[[Pointer, Pointer, int, Pointer], None]:
    """Make the function that multiplies one row of bytes with the rows of a panel.

    Returns
    -------
    callable
        ``dots_of_panel(data, weights, steps, target)`` for code that Numba compiles: adds the sums
        of `steps` groups of four products to as many int32 as a register holds. `weights` are
        lines of `armpy_numba_acc.packing.weights_u8.lines_of_groups`.
    """
    products = spread_products(isa)

    @primitive(NOTHING, WORD, WORD, WORD, WORD)
    def dots_of_panel(
        code: Code, data: CodeValue, weights: CodeValue, steps: CodeValue, target: CodeValue
    ) -> None:
        def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            word = data.load(I32, number, align=1).splat(isa.lanes)
            line = products.weights(weights + number * products.bytes_per_vector, 0)
            return [products.add(totals[0], products.elements(word), line)]

        kind = vector(I32, isa.lanes)
        (total,) = loop(code, steps, [target.load(kind)], step)
        target.store(total)

    return dots_of_panel
