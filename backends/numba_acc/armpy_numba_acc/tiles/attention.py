"""Attention of a block of queries, which lie side by side in vectors, key by key.

Notes
-----
The result is transposed: a block has one or more vectors of queries, and rows of scores and
of outputs have one element for each of them. So keys and values are read where they are, element by
element, and nothing is added up across lanes.

References
----------
Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022;
Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

from functools import cache

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import FLOAT, NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I32, Code, CodeValue, choose, larger, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise import functions as f
from armpy_numba_acc.tiles.elementwise.elements import load_elements

LOWEST = -3.4028234663852886e38
"""A value below all visible scores."""


@cache
def product_rows(isa: Isa, vectors: int, rows: int, accumulates: bool) -> Primitive:
    """Make ``multiply(values, pitch, lines, target, depth, factors)``.

    Writes `rows` rows of a block's width: sums over `depth` of single values times lines of a
    block's width. The values of a row lie side by side, and rows `pitch` bytes apart; or, to
    accumulate, values of all rows side by side, and those of a row `pitch` bytes apart. What is
    there is multiplied with the block's factors and added then.
    """
    kind = vector(F32, isa.lanes)

    @primitive(NOTHING, *(WORD,) * 6)
    def multiply(
        code: Code,
        values: CodeValue,
        pitch: CodeValue,
        lines: CodeValue,
        target: CodeValue,
        depth: CodeValue,
        factors: CodeValue,
    ) -> None:
        def value_of(row: int, number: CodeValue) -> CodeValue:
            place = values + number * pitch if accumulates else values + pitch * row
            return place.load(F32, row) if accumulates else place.load(F32, number)

        def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            line = [lines.load(kind, number * vectors + j) for j in range(vectors)]
            result = []
            for row in range(rows):
                value = value_of(row, number).splat(isa.lanes)
                for j in range(vectors):
                    result.append(value.times_plus(line[j], totals[row * vectors + j]))
            return result

        totals = loop(code, depth, [code.constant(kind)] * (rows * vectors), step)
        for number, total in enumerate(totals):
            result = total
            if accumulates:
                factor = factors.load(kind, number % vectors)
                result = target.load(kind, number).times_plus(factor, total)
            target.store(result, number)

    return multiply


@cache
def scale_rows(isa: Isa, vectors: int) -> Primitive:
    """Make ``multiply(rows, count, factor)`` for rows of a block's width, in place."""
    kind = vector(F32, isa.lanes)

    @primitive(NOTHING, WORD, WORD, FLOAT)
    def multiply(code: Code, rows: CodeValue, count: CodeValue, factor: CodeValue) -> None:
        factors = factor.splat(isa.lanes)

        def step(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            for j in range(vectors):
                place = number * vectors + j
                rows.store(rows.load(kind, place) * factors, place)
            return []

        loop(code, count, [], step)

    return multiply


@cache
def softmax_rows(isa: Isa, vectors: int, mask: str, is_bounded: bool, is_capped: bool) -> Primitive:
    """Make ``weigh(scores, count, mask, pitch, offset, low, high, state, scale, cap)``.

    Replaces `count` rows of products by powers. `mask` is ``f32`` or ``bool``, ``keys`` after it
    if all queries have one element, or empty; its rows are `pitch` bytes apart. `offset` is what
    the first key's number is above the first query's position: a query sees keys from `low` to
    `high` above its own position. `state` holds the largest score of each query, the sum of its
    powers, and, written here, the factor of the earlier sum.
    """
    lanes, kind = isa.lanes, vector(F32, isa.lanes)
    stored, _, of_keys = mask.partition(" ")

    def masked(score: CodeValue, row: CodeValue, j: int) -> CodeValue:
        if of_keys:
            mask = load_elements(row, stored, 0, 1).at(0).splat(lanes)
        else:
            mask = load_elements(row, stored, j * lanes, lanes)
        if stored == "bool":
            return choose(mask, score, score.like(-float("inf")))
        # A sum with NaN would be NaN, and hidden elements are not.
        return choose(mask.equals(-float("inf")), mask, score + mask)

    @primitive(NOTHING, *(WORD,) * 8, FLOAT, FLOAT)
    def weigh(
        code: Code,
        scores: CodeValue,
        count: CodeValue,
        marks: CodeValue,
        pitch: CodeValue,
        offset: CodeValue,
        low: CodeValue,
        high: CodeValue,
        state: CodeValue,
        scale: CodeValue,
        cap: CodeValue,
    ) -> None:
        factor, limit = scale.splat(lanes), cap.splat(lanes)
        lowest, highest = (bound.narrowed(I32).splat(lanes) for bound in (low, high))
        places = [code.numbers(I32, range(j * lanes, (j + 1) * lanes)) for j in range(vectors)]

        def score_of(number: CodeValue, j: int) -> CodeValue:
            score = scores.load(kind, number * vectors + j) * factor
            if is_capped:
                score = f.tanh(score / limit) * limit
            if mask:
                score = masked(score, marks + number * pitch, j)
            if is_bounded:
                distance = (offset + number).narrowed(I32).splat(lanes) - places[j]
                seen = (distance >= lowest) & (distance <= highest)
                score = choose(seen, score, score.like(-float("inf")))
            return score

        def find(number: CodeValue, largest: list[CodeValue]) -> list[CodeValue]:
            result = []
            for j in range(vectors):
                score = score_of(number, j)
                scores.store(score, number * vectors + j)
                result.append(larger(largest[j], score))
            return result

        before = [state.load(kind, j) for j in range(vectors)]
        largest = loop(code, count, before, find)
        totals = []
        for j in range(vectors):
            change = f.exp_within(before[j] - largest[j])
            state.store(largest[j], j)
            state.store(change, 2 * vectors + j)
            totals.append(state.load(kind, vectors + j) * change)

        def add(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            result = []
            for j in range(vectors):
                power = f.exp_within(scores.load(kind, number * vectors + j) - largest[j])
                scores.store(power, number * vectors + j)
                result.append(totals[j] + power)
            return result

        for j, total in enumerate(loop(code, count, totals, add)):
            state.store(total, vectors + j)

    return weigh


@cache
def block_ends(isa: Isa, vectors: int) -> tuple[Primitive, Primitive]:
    """Make ``begin(state, target, count)`` and ``finish(state, target, count)`` of a block.

    `count` rows of outputs are set to 0, and in the end divided by the sums of powers; they are 0
    where there is nothing to divide by. The state's first row becomes the sum of each query's
    outputs: NaN if one of them is.
    """
    kind = vector(F32, isa.lanes)

    @primitive(NOTHING, *(WORD,) * 3)
    def begin(code: Code, state: CodeValue, target: CodeValue, count: CodeValue) -> None:
        for j in range(vectors):
            state.store(code.constant(kind, LOWEST), j)
            state.store(code.constant(kind), vectors + j)

        def clear(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            for j in range(vectors):
                target.store(code.constant(kind), number * vectors + j)
            return []

        loop(code, count, [], clear)

    @primitive(NOTHING, *(WORD,) * 3)
    def finish(code: Code, state: CodeValue, target: CodeValue, count: CodeValue) -> None:
        totals = [state.load(kind, vectors + j) for j in range(vectors)]
        shares = [choose(total.equals(0.0), total, 1.0 / total) for total in totals]

        def divide(number: CodeValue, sums: list[CodeValue]) -> list[CodeValue]:
            result = []
            for j in range(vectors):
                place = number * vectors + j
                output = target.load(kind, place) * shares[j]
                target.store(output, place)
                result.append(sums[j] + output)
            return result

        for j, total in enumerate(loop(code, count, [code.constant(kind)] * vectors, divide)):
            state.store(total, j)

    return begin, finish
