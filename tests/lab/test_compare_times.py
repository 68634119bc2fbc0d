"""Ratios of two trees' times, with intervals, from rounds that other work disturbs."""

from __future__ import annotations

import random

import pytest

from lab.comparison.times import Rounds, interval, ratio_of


def rounds(old: float, new: float, *, disturbed: float = 0.0, seed: int = 0) -> Rounds:
    draw = random.Random(seed)

    def time(seconds: float) -> float:
        noise = draw.uniform(1.0, 1.01)
        return seconds * noise * (3.0 if draw.random() < disturbed else 1.0)

    return [(time(old), time(new)) for _ in range(50)]


def test_a_tree_that_takes_half_as_long_has_a_ratio_of_two() -> None:
    assert ratio_of([rounds(2e-3, 1e-3)]) == pytest.approx(2.0, rel=0.01)


def test_rounds_that_other_work_disturbs_do_not_count() -> None:
    assert ratio_of([rounds(1e-3, 1e-3, disturbed=0.5)]) == pytest.approx(1.0, rel=0.02)


def test_one_lucky_pair_of_processes_does_not_count() -> None:
    pairs = [rounds(1.0, 1.0, seed=1), rounds(1.0, 1.0, seed=2), rounds(1.5, 1.0, seed=3)]
    assert ratio_of(pairs) == pytest.approx(1.0, rel=0.01)


def test_the_interval_holds_the_ratio_and_shows_three_percent() -> None:
    low, high = interval([rounds(1.0, 1.03, seed=seed) for seed in range(5)])
    assert low <= 1 / 1.03 <= high
    assert high < 0.98
