from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from armpy.profiling import percentile
from armpy_tools.measure.latency import latency_of
from armpy_tools.measure.ratio import Ratio, compare, median_interval


def processes(
    seed: int, factor: float = 1.0, *, count: int = 6, turns: int = 12, noise: float = 0.05
) -> list[list[float]]:
    """Turns of a subject whose runs take `factor`; each process is a few percent off."""
    source = random.Random(seed)
    process_turns = []
    for _ in range(count):
        luck = math.exp(source.gauss(0, 0.02))
        process_turns.append(
            [factor * luck * math.exp(source.gauss(0, noise)) for _ in range(turns)]
        )
    return process_turns


def test_percentiles_lie_between_two_numbers_in_proportion() -> None:
    # By hand, as R's type 7: 1 + 0.9 * 3 = 3.7.
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.9) == pytest.approx(3.7)
    assert percentile([5.0], 0.99) == 5.0


def test_a_latency_has_the_numbers_of_its_runs() -> None:
    latency = latency_of([3000.0, 1000.0, 2000.0, 10_000.0])
    assert (latency.runs, latency.min_ms, latency.median_ms, latency.max_ms) == (4, 1.0, 2.5, 10.0)
    assert latency.mean_ms == 4.0
    assert latency.p90_ms == pytest.approx(7.9)  # 3 + 0.7 * 7
    assert latency.spread == pytest.approx((4.75 - 1.75) / 2 / 2.5)


def test_an_interval_lies_between_two_of_the_numbers() -> None:
    # Ranks by a table of the sign test: of 20 numbers the 6th and the 15th.
    assert median_interval([float(n) for n in range(1, 21)]) == (6.0, 15.0)
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    # 99 % are wider: the 4th and the 17th.
    assert median_interval([float(n) for n in range(1, 21)], 0.99) == (4.0, 17.0)
    low, high = median_interval([float(n) for n in range(2001)])
    assert (low, high) == pytest.approx((1000 - 0.98 * 2001**0.5, 1000 + 0.98 * 2001**0.5), abs=2)


def test_a_ratio_is_the_median_of_processes_and_its_interval_lies_between_them() -> None:
    ratio = compare([[n] for n in (1.1, 1.2, 1.3, 1.4, 1.5, 1.6)], [[1.0]] * 6)
    assert ratio.value == pytest.approx(1.35)
    assert (ratio.low, ratio.high) == (1.1, 1.6)  # of six all: 1 - 2 / 2**6 is above 95 %
    assert (ratio.units, ratio.unit, ratio.verdict) == (6, "process", "faster")
    assert str(ratio) == "1.35 (1.1 to 1.6)"


def verdicts(factor: float, tries: int = 200, **how: int) -> list[Ratio]:
    return [
        compare(processes(2 * n, 1.0, **how), processes(2 * n + 1, factor, **how))
        for n in range(tries)
    ]


def test_equal_subjects_differ_no_more_often_than_the_confidence_says() -> None:
    wrong = sum(ratio.verdict != "no difference shown" for ratio in verdicts(1.0))
    assert wrong <= 20  # 10 of 200 are expected


def test_a_subject_that_takes_1_2_times_as_long_is_slower() -> None:
    ratios = verdicts(1.2)
    assert sum(ratio.verdict == "slower" for ratio in ratios) >= 190
    assert sum(ratio.low < 1 / 1.2 < ratio.high for ratio in ratios) >= 180
    assert not [ratio for ratio in ratios if ratio.verdict == "faster"]


def test_a_single_process_is_judged_by_blocks_of_its_turns() -> None:
    ratio = compare([[1.2] * 12], [[1.0, 1.01] * 6])
    assert (ratio.unit, ratio.units, ratio.verdict) == ("block of turns", 8, "faster")
    assert ratio.low > 1.15


def test_a_few_disturbed_turns_change_nothing() -> None:
    disturbed: Sequence[list[float]] = [[1.0] * 10 + [50.0, 80.0] for _ in range(5)]
    ratio = compare([[1.0] * 12 for _ in range(5)], disturbed)
    assert ratio.verdict == "no difference shown"
    assert ratio.value == 1.0


def test_too_few_units_show_nothing() -> None:
    ratio = compare([[2.0], [2.0]], [[1.0], [1.0]])
    assert (ratio.value, ratio.verdict) == (2.0, "too few runs")
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert compare([], []).verdict == "too few runs"


def test_turns_without_a_counterpart_do_not_count() -> None:
    baseline = [[2.0, 2.0, 9.0], *[[2.0]] * 5]
    ratio = compare(baseline, [[1.0, 1.0], *[[1.0]] * 4, [1.0, 7.0]])
    assert (ratio.value, ratio.verdict) == (2.0, "faster")
