from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.core import lifetimes
from armpy.core.lifetimes import Lifetime, neighbours, place_in_order

THINGS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(0, 9)), max_size=30
).map(
    lambda things: ([(start, start + more) for start, more, _ in things], [s for *_, s in things])
)
Things = tuple[list[Lifetime], list[int]]


def _share_a_step(a: Lifetime, b: Lifetime) -> bool:
    return bool(set(range(a[0], a[1] + 1)) & set(range(b[0], b[1] + 1)))


@given(THINGS)
def test_neighbours_are_those_that_share_a_step(things: Things) -> None:
    spans, _ = things
    near = neighbours(spans)
    assert near is not None
    for number, span in enumerate(spans):
        others = [n for n, o in enumerate(spans) if n != number and _share_a_step(span, o)]
        assert sorted(near[number]) == others


def test_too_many_pairs_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "FEW_PAIRS", 6)
    monkeypatch.setattr(lifetimes, "FEW_PAIRS_EACH", 1)
    assert neighbours([(0, 9)] * 4) is not None  # six pairs
    assert neighbours([(0, 9)] * 5) is None  # ten
    assert neighbours([(n, n) for n in range(100)]) is not None


@given(THINGS)
def test_what_lives_together_lies_apart(things: Things) -> None:
    spans, sizes = things
    placed = list(zip(spans, sizes, place_in_order(spans, sizes), strict=True))
    for (a, a_size, a_at), (b, b_size, b_at) in combinations(placed, 2):
        if _share_a_step(a, b) and a_size and b_size:
            assert a_at + a_size <= b_at or b_at + b_size <= a_at


def test_what_has_ended_is_used_again() -> None:
    # Two of 3 side by side end at step 1: the gap of 6 takes the next two, the 7 goes on top of
    # what is left, whose gap of 2 at the end grows.
    spans = [(0, 1), (0, 1), (2, 9), (3, 9), (4, 9)]
    assert place_in_order(spans, [3, 3, 3, 1, 7]) == [0, 3, 0, 3, 4]


def test_the_smallest_gap_is_taken_in_order_too() -> None:
    # At step 2 there are gaps of 4 at 0 and of 2 at 6, with live buffers between and after them.
    spans = [(0, 1), (0, 9), (0, 1), (0, 9), (2, 9), (2, 9)]
    assert place_in_order([*spans], [5, 4, 3, 2, 3, 5]) == [0, 5, 9, 12, 9, 0]


@pytest.mark.parametrize("count", [2_000, 50_000])
def test_equal_sizes_take_no_more_than_live_at_once(count: int) -> None:
    half = count // 2
    spans = [(n, 2 * half - n) for n in range(half)]
    spans += [(half + n, half + n) for n in range(half)]
    # The first ones end while the others come, one at a time.
    assert max(place_in_order(spans, [64] * len(spans))) == 64 * half
