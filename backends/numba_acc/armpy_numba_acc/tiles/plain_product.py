"""Products of matrices of any sizes, as they lie in memory."""

from __future__ import annotations

from functools import cache

from armpy_numba_acc.llvm.control import Step, loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import for_each_vector

_ROWS = (8, 4, 1)
"""Rows at once, while so many are left."""


@cache
def make_plain_product(isa: Isa) -> Primitive:
    """Make ``multiply(target, x, y, panel, rows, depth, columns, count)`` of float32 matrices.

    Elements of x (rows, depth), y (depth, columns) and the target lie row by row; `count` columns
    are computed. `panel` has room for a vector for each line of y: columns are brought together
    before all rows use them. Each sum is added up in the order of the lines, as other products of
    float32 are.
    """

    @primitive(NOTHING, *(WORD,) * 8)
    def multiply(
        code: Code,
        target: CodeValue,
        x: CodeValue,
        y: CodeValue,
        panel: CodeValue,
        rows: CodeValue,
        depth: CodeValue,
        columns: CodeValue,
        count: CodeValue,
    ) -> None:
        def compute(lanes: int, column: CodeValue, mask: CodeValue | None) -> None:
            kind = vector(F32, lanes)

            def bring(line: CodeValue, values: list[CodeValue]) -> list[CodeValue]:
                elements = y.place(F32, line * columns + column).load(kind, mask=mask)
                panel.place(F32, line * lanes).store(elements)
                return values

            def block(height: int) -> Step:
                def step(row: CodeValue, values: list[CodeValue]) -> list[CodeValue]:
                    def add(line: CodeValue, sums: list[CodeValue]) -> list[CodeValue]:
                        elements = panel.place(F32, line * lanes).load(kind)
                        factors = [x.load(F32, (row + n) * depth + line) for n in range(height)]
                        return [
                            factor.splat(lanes).times_plus(elements, total)
                            for factor, total in zip(factors, sums, strict=True)
                        ]

                    sums = loop(code, depth, [code.constant(kind)] * height, add)
                    for n, total in enumerate(sums):
                        place = target.place(F32, (row + n) * columns + column)
                        place.store(total, mask=mask)
                    return values

                return step

            loop(code, depth, [], bring)
            done = code.integer(0)
            for height in _ROWS:
                end = done + ((rows - done) & -height)
                loop(code, end, [], block(height), start=done, by=height)
                done = end

        for_each_vector(isa, isa.lanes, count, compute)

    return multiply
