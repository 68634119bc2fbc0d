"""Attention of a few queries at one position: keys and values are read row by row.

Notes
-----
Vectors hold features of a key or a value, which all queries are multiplied with. Scores lie as
those of `armpy_numba_acc.tiles.attention`: a vector for each key, with an element for each query.
"""

from __future__ import annotations

from functools import cache

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, vector
from armpy_numba_acc.machine.isa import Isa


def lane_sums(rows: list[CodeValue]) -> CodeValue:
    """A vector of the sums of as many vectors as it has lanes."""
    lanes = size = len(rows)
    while size > 1:
        half = size // 2
        starts = [segment * size for segment in range(2 * lanes // size)]
        low = [start + at for start in starts for at in range(half)]
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [
            row.shuffled(low, other) + row.shuffled([lane + half for lane in low], other)
            for row, other in pairs
        ]
        size = half
    return rows[0]


@cache
def score_keys(isa: Isa, queries: int) -> Primitive:
    """Make ``multiply(key, pitch, rows, target, groups, vectors)``.

    Writes a vector of products for each key, of which a group has as many as a vector has elements
    for them and `queries` rows. Vectors are those of a row.
    """
    lanes, kind = isa.lanes, vector(F32, isa.lanes)
    keys = lanes // queries

    @primitive(NOTHING, *(WORD,) * 6)
    def multiply(
        code: Code,
        key: CodeValue,
        pitch: CodeValue,
        rows: CodeValue,
        target: CodeValue,
        groups: CodeValue,
        vectors: CodeValue,
    ) -> None:
        row_bytes = vectors * isa.vector_bytes

        def group(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            lines = [key + (number * keys + at) * pitch for at in range(keys)]

            def step(at: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                features = [line.load(kind, at) for line in lines]
                parts = [(rows + row_bytes * query).load(kind, at) for query in range(queries)]
                factors = [(feature, part) for feature in features for part in parts]
                return [
                    feature.times_plus(part, total)
                    for (feature, part), total in zip(factors, totals, strict=True)
                ]

            sums = lane_sums(loop(code, vectors, [code.constant(kind)] * lanes, step))
            for at in range(keys):
                own = [at * queries + lane % queries for lane in range(lanes)]
                target.store(sums.shuffled(own), number * keys + at)
            return []

        loop(code, groups, [], group)

    return multiply


@cache
def gather_values(isa: Isa, queries: int) -> Primitive:
    """Make ``multiply(value, pitch, scores, target, keys, vectors)``.

    Writes a row for each query: values weighted by their scores, added up over the keys.
    """
    kind, at_once = vector(F32, isa.lanes), max(isa.num_registers // 2 // queries, 1)

    @primitive(NOTHING, *(WORD,) * 6)
    def multiply(
        code: Code,
        value: CodeValue,
        pitch: CodeValue,
        scores: CodeValue,
        target: CodeValue,
        keys: CodeValue,
        vectors: CodeValue,
    ) -> None:
        row_bytes = vectors * isa.vector_bytes

        def columns(first: CodeValue, count: int) -> list[CodeValue]:
            def step(key: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                line = value + key * pitch
                features = [line.load(kind, first + at) for at in range(count)]
                result = []
                for query in range(queries):
                    score = scores.load(F32, key * isa.lanes + query).splat(isa.lanes)
                    for at, feature in enumerate(features):
                        result.append(feature.times_plus(score, totals[query * count + at]))
                return result

            totals = loop(code, keys, [code.constant(kind)] * (queries * count), step)
            for number, total in enumerate(totals):
                row = target + row_bytes * (number // count)
                row.store(total, first + number % count)
            return []

        whole = vectors / at_once * at_once
        loop(code, whole, [], lambda at, _: columns(at, at_once), by=at_once)
        loop(code, vectors, [], lambda at, _: columns(at, 1), start=whole)

    return multiply


@cache
def add_rows(isa: Isa) -> Primitive:
    """Make ``add(source, target, count, factors)``: vectors times factors, plus others."""
    kind = vector(F32, isa.lanes)

    @primitive(NOTHING, *(WORD,) * 4)
    def add(
        code: Code, source: CodeValue, target: CodeValue, count: CodeValue, factors: CodeValue
    ) -> None:
        factor = factors.load(kind)

        def step(at: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            target.store(target.load(kind, at).times_plus(factor, source.load(kind, at)), at)
            return []

        loop(code, count, [], step)

    return add
