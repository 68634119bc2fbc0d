from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armpy.core.symbolic import Size, SymbolicTrace, computed, current, fixed, is_traced

SIZES = st.integers(1, 1000)


@given(SIZES, SIZES, SIZES)
def test_what_is_computed_from_a_size_is_known_for_another(one: int, other: int, by: int) -> None:
    def formula(size: int) -> list[int | float]:
        padded = -(-size // by) * by
        return [
            padded,
            (7 * size + 3) % by,
            size / by,
            by - size,
            math.ceil(size / by),
            by**2 // size,
        ]

    trace = SymbolicTrace([one])
    dims = formula(trace.given[0])  # type: ignore[arg-type]  # stands for an integer
    assert all(isinstance(size, Size) for size in dims)
    numbers = trace.formula(dims)([other])
    assert numbers is not None
    assert [numbers[size.number] for size in dims] == formula(other)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "short"),
    [
        (lambda size: -(-size // 1), lambda size: size),
        (lambda size: (size * 64) * 4, lambda size: size * 256),
        (lambda size: size + 8 + 24 - 2, lambda size: size + 30),
        (lambda size: -1 * -(size + 5 - 5), lambda size: size),
        (lambda size: -(0 - size), lambda size: size),
    ],
)
def test_sums_and_products_with_plain_numbers_are_computed_as_one(
    written: Callable[[Size], Size], short: Callable[[Size], Size]
) -> None:
    """Programs compute all sizes for each new shape."""
    (size,) = SymbolicTrace([7]).given
    assert written(size).number == short(size).number


def test_factors_of_fractions_are_not_combined() -> None:
    """They would be rounded differently."""
    trace = SymbolicTrace([1])
    product = trace.given[0] / 10 * 3 * 7
    numbers = trace.formula([product])([1])
    assert numbers is not None
    assert numbers[product.number] == 1 / 10 * 3 * 7 != 1 / 10 * 21


@given(SIZES, SIZES)
def test_what_was_found_out_has_to_hold_for_the_others(one: int, other: int) -> None:
    def branch(size: int) -> tuple[bool, bool, bool, int]:
        return size > 500, size % 8 == 0, bool(size - 3), min(size, 64) if size < 64 else 64

    trace = SymbolicTrace([one])
    traced = branch(trace.given[0])  # type: ignore[arg-type]  # stands for an integer
    numbers = trace.formula([])([other])
    assert (numbers is not None) == (traced[:3] == branch(other)[:3] and (one < 64) == (other < 64))


@pytest.mark.parametrize(
    "leak",
    [
        int,
        float,
        operator.index,
        hash,
        range,
        np.zeros,
        lambda size: np.array([size], np.int64),
        lambda size: {size: 1},
        "x".__mul__,
        lambda size: np.arange(3) * size,
        fixed,
    ],
)
def test_a_size_that_is_needed_as_a_number_holds_for_that_one_alone(leak: object) -> None:
    trace = SymbolicTrace([5])
    leak(trace.given[0])  # type: ignore[operator]  # a function
    formula = trace.formula([])
    assert formula([5]) is not None
    assert formula([6]) is None


@pytest.mark.parametrize("free", [repr, str, current, is_traced, lambda size: (1, size, 2)])
def test_what_finds_nothing_out_makes_no_condition(free: object) -> None:
    trace = SymbolicTrace([5])
    free(trace.given[0])  # type: ignore[operator]  # a function
    assert trace.formula([])([6]) is not None


def test_two_sizes_that_were_equal_have_to_stay_equal_if_that_was_asked() -> None:
    trace = SymbolicTrace([4, 4])
    first, other = trace.given
    assert (1, first) == (1, other)
    formula = trace.formula([first])
    assert formula([9, 9]) is not None
    assert formula([9, 8]) is None


def test_sizes_that_nobody_asks_for_are_zeros() -> None:
    """Lists of a thousand numbers are made for each new shape, from memory that is not cached."""
    trace = SymbolicTrace([4, 5])
    wide = 3000 * trace.given[0]
    wanted = wide + 1000 * trace.given[1]
    numbers = trace.formula([wanted])([7, 9])
    assert numbers is not None
    assert numbers[wanted.number] == 30_000
    assert {*numbers} == {0, 30_000}


def test_a_function_of_sizes_is_called_anew() -> None:
    trace = SymbolicTrace([4])
    cost = computed(math.comb, trace.given[0], 2)
    numbers = trace.formula([cost])([7])
    assert numbers is not None
    assert numbers[cost.number] == math.comb(7, 2)  # type: ignore[attr-defined]
    assert computed(math.comb, 7, 2) == math.comb(7, 2)


def test_what_cannot_be_computed_for_others_does_not_hold_for_them() -> None:
    trace = SymbolicTrace([4])
    size = trace.given[0]
    quotient = 8 // (size - 3) if size > 3 else size
    assert trace.formula([quotient])([3]) is None


def test_a_size_of_another_trace_is_taken_for_what_it_is() -> None:
    outer, inner = SymbolicTrace([3]), SymbolicTrace([5])
    product = inner.given[0] * outer.given[0]
    numbers = inner.formula([product])([7])
    assert numbers is not None
    assert numbers[product.number] == 21
    assert outer.formula([])([4]) is None


_ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
_COMPARISONS = (operator.eq, operator.lt, operator.le)


_NUMBERS = st.tuples(st.integers(-4, 20), st.integers(0, 300))
_STEPS = st.tuples(
    st.sampled_from((*_ARITHMETIC, *_ARITHMETIC, *_COMPARISONS)),
    st.integers(0, 20),
    st.one_of(st.integers(0, 20), st.floats(-9, -1)),
)
"""Function, the first operand's place, and the other one's, or a number in its place."""


@given(_NUMBERS, st.lists(_NUMBERS, max_size=4), st.lists(_STEPS, max_size=12))
def test_formulas_hold_exactly_where_each_step_and_condition_does(
    traced: tuple[int, int], others: list[tuple[int, int]], steps: list[tuple[Any, int, Any]]
) -> None:
    def run(first: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        values, answers = [*first, 0, 1, 8, 64, -3], list[bool]()
        for function, left, right in steps:
            other = right if right < 0 else values[right % len(values)]
            result = function(values[left % len(values)], other)
            (answers if function in _COMPARISONS else values).append(result)
        return values, answers

    trace = SymbolicTrace(traced)
    try:
        values, answers = run(trace.given)
        expected = [run(sizes) for sizes in (traced, *others)]
    except ArithmeticError:
        assume(False)
    formula = trace.formula(values)
    for sizes, (plain_values, plain_answers) in zip((traced, *others), expected, strict=True):
        numbers = formula(sizes)
        assert (numbers is not None) == (answers == plain_answers)
        if numbers is not None:
            results = [numbers[v.number] if isinstance(v, Size) else v for v in values]
            assert results == plain_values


@given(st.lists(SIZES, min_size=1, max_size=8))
def test_answers_do_not_depend_on_what_was_asked_before(asked: list[int]) -> None:
    trace = SymbolicTrace([16])
    size = trace.given[0]
    assert size % 8 == 0
    assert 3 * size < 600
    formula = trace.formula([])
    for other in asked:
        assert (formula([other]) is not None) == (other % 8 == 0 and 3 * other < 600)
