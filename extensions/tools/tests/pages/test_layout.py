from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy_tools.pages import lay_out
from armpy_tools.pages.layout import GAP, MOST_BENDS_EACH, _pooled

SIZE = (100.0, 40.0)


def test_a_chain_is_a_straight_line() -> None:
    layout = lay_out([SIZE] * 5, [(n, n + 1) for n in range(4)])
    xs, ys = zip(*layout.centres, strict=True)
    assert len(set(xs)) == 1
    assert [b - a for a, b in pairwise(ys)] == [ys[1] - ys[0]] * 4


def test_branches_lie_beside_each_other_between_their_ends() -> None:
    (x0, _), (x1, y1), (x2, y2), (x3, _) = lay_out(
        [SIZE] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)]
    ).centres
    assert y1 == y2
    assert abs(x1 - x2) == pytest.approx(SIZE[0] + GAP)
    assert x0 == pytest.approx((x1 + x2) / 2)
    assert x3 == pytest.approx((x1 + x2) / 2)


def test_a_long_edge_goes_around_what_lies_between() -> None:
    layout = lay_out([SIZE] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [len(way) for way in layout.ways] == [0, 0, 0, 2]
    for (x, y), (node_x, node_y) in zip(layout.ways[3], layout.centres[1:3], strict=True):
        assert y == node_y
        assert abs(x - node_x) > SIZE[0] / 2


def test_what_reads_nothing_lies_just_above_its_reader() -> None:
    layout = lay_out([SIZE] * 4, [(0, 2), (2, 3), (1, 3)])
    assert layout.centres[1][1] == layout.centres[2][1]


def test_crossings_that_need_not_be_are_undone() -> None:
    # Two chains whose nodes come in turns: 0-3-4, 1-2-5.
    layout = lay_out([SIZE] * 6, [(0, 3), (1, 2), (3, 4), (2, 5)])
    x = [centre[0] for centre in layout.centres]
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[4] < x[5])


def test_very_many_long_edges_do_without_bends() -> None:
    count = 300
    edges = [(n, n + 1) for n in range(count - 1)]
    edges += [(n, m) for n in range(count) for m in range(n + 2, count, 7)]
    layout = lay_out([SIZE] * count, edges)
    assert sum(map(len, layout.ways)) <= MOST_BENDS_EACH * count + 100


def test_edges_against_the_order_do_not_hang_the_layout() -> None:
    assert len(lay_out([SIZE] * 2, [(0, 1), (1, 0), (1, 1)]).centres) == 2


def test_an_empty_graph_has_an_empty_layout() -> None:
    assert lay_out([], []).centres == []


@given(st.integers(1, 25), st.data())
@settings(max_examples=50, deadline=None)
def test_no_nodes_overlap_and_edges_go_down(count: int, data: st.DataObject) -> None:
    numbers = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(numbers, numbers), max_size=60))
    edges = [pair for pair in pairs if pair[0] < pair[1]]
    centres = lay_out([SIZE] * count, edges).centres
    for a in range(count):
        for b in range(a):
            apart = np.abs(np.subtract(centres[a], centres[b]))
            assert apart[0] >= SIZE[0] - 1e-6 or apart[1] >= SIZE[1] - 1e-6
    assert all(centres[a][1] < centres[b][1] for a, b in edges)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8))
@settings(deadline=None)
def test_pooled_numbers_do_not_fall_and_keep_their_sum(numbers: list[float]) -> None:
    pooled = _pooled(numbers)
    assert all(a <= b + 1e-9 for a, b in pairwise(pooled))
    assert sum(pooled) == pytest.approx(sum(numbers), abs=1e-6)
