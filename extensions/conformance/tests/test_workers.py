from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import pytest

from armpy.errors import ArmpyError
from armpy_conformance.workers import LostItem, judge_in_workers


def make_doubler() -> Callable[[int], int]:
    return double


def double(item: int) -> int:
    if item == 3:
        os._exit(7)
    if item == 5:
        time.sleep(60)
    if item == 6:
        raise ValueError("six cannot be judged")
    return item * 2


def run(batches: Sequence[Sequence[int]], timeout_s: float = 60.0) -> list[int | LostItem[int]]:
    results = judge_in_workers(batches, make_doubler, int, jobs=2, timeout_s=timeout_s)
    return list(results)


def test_every_item_is_judged_once() -> None:
    assert set(run([[1, 2], [4], [], [7, 8, 9]])) == {2, 4, 8, 14, 16, 18}


@pytest.mark.slow
def test_an_item_that_ends_its_process_is_lost_and_the_rest_of_its_batch_is_judged() -> None:
    results = run([[1, 3, 4], [2]])
    (lost,) = [result for result in results if isinstance(result, LostItem)]
    assert lost == LostItem(3, "the process ended with code 7")
    assert sorted(result for result in results if not isinstance(result, LostItem)) == [2, 4, 8]


@pytest.mark.slow
def test_an_item_that_hangs_is_lost_and_the_rest_of_its_batch_is_judged() -> None:
    results = run([[5, 1]], timeout_s=2)
    assert results == [LostItem(5, "no answer within 2 s"), 2]


@pytest.mark.slow
def test_an_end_leaves_out_the_item_that_is_being_judged() -> None:
    started = time.perf_counter()
    end_s = started + 6
    assert list(judge_in_workers([[1, 5]], make_doubler, int, jobs=1, end_s=end_s)) in ([2], [])
    assert time.perf_counter() < started + 40


@pytest.mark.slow
def test_what_a_judge_raises_ends_the_run() -> None:
    with pytest.raises(ArmpyError, match=r"it raised ValueError.*six cannot be judged"):
        run([[6]])


def test_nothing_to_judge_is_no_result() -> None:
    assert run([]) == []
