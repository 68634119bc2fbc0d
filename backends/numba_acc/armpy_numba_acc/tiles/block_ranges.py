"""Blocks of floats as signed bytes, each by its range."""

from __future__ import annotations

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I8, I32, Code, CodeValue, choose, larger, vector
from armpy_numba_acc.tiles.elementwise import functions as f

_HIGHEST, _LARGEST = 127.0, 3.4028234663852886e38
_LANES = 16
"""Elements that are converted together: the least of a block."""


def _folded(values: CodeValue, is_sum: bool) -> CodeValue:
    """The largest or the sum of all lanes."""
    while values.count > 1:
        half = values.count // 2
        low, high = (values.shuffled(range(first, first + half)) for first in (0, half))
        values = low + high if is_sum else larger(low, high)
    return values.at(0)


def quantize_block(block: int) -> Primitive:
    """Make ``quantize(source, target, range)``; see `QuantizeBlocks`.

    A block with an infinity or NaN has a scale that is NaN.
    """
    kind, turns = vector(F32, _LANES), block // _LANES
    order = [8 * group + 2 * at + odd for group in (0, 1) for odd in (0, 1) for at in range(4)]

    @primitive(NOTHING, WORD, WORD, WORD)
    def quantize(code: Code, source: CodeValue, target: CodeValue, place: CodeValue) -> None:
        end = source.like(turns)

        def widen(number: CodeValue, reach: list[CodeValue]) -> list[CodeValue]:
            return [larger(reach[0], abs(source.load(kind, number)))]

        reach = _folded(loop(code, end, [code.constant(kind)], widen)[0], is_sum=False)
        rest = reach - reach  # 0, but NaN if the range is infinite or none
        # Numbers so small that the reciprocal of their scale is infinite count as 0.
        reach = choose(_HIGHEST / reach <= _LARGEST, reach, _HIGHEST)
        place.store(reach / _HIGHEST + rest)
        inverse = (_HIGHEST / reach).splat(_LANES)

        def convert(number: CodeValue, total: list[CodeValue]) -> list[CodeValue]:
            steps = source.load(kind, number) * inverse
            zero, low, high = (steps.like(bound) for bound in (0.0, -_HIGHEST, _HIGHEST))
            integers = f.to_stored(steps, zero, low, high)
            target.store(integers.narrowed(I8).shuffled(order), number)
            return [total[0] - integers]

        total = loop(code, end, [code.constant(vector(I32, _LANES))], convert)[0]
        place.store(_folded(total, is_sum=True), 1)

    return quantize
