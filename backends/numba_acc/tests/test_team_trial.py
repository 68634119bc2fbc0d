"""Short programs run on as many threads as their own calls are fastest with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.runtime import instance, team_trial
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.runtime.team_trial import TeamTrial

from armpy.graph import SubgraphView

from .networks import convolutions, image


def ways_of_calls(
    monkeypatch: pytest.MonkeyPatch, num_calls: int, time_of: Callable[[bool, int], int]
) -> list[bool]:
    """Which calls ran alone, if each takes as long as `time_of` says of its way and number."""
    now_ns = 0
    monkeypatch.setattr(team_trial, "perf_counter_ns", lambda: now_ns)
    trial, ways = TeamTrial(), []
    for number in range(num_calls):
        ways.append(trial.begin())
        now_ns += time_of(ways[-1], number)
        trial.end()
    return ways


@pytest.mark.parametrize("is_alone_faster", [False, True])
def test_the_faster_way_is_found_soon_and_the_other_one_is_tried_seldom(
    is_alone_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_of(is_alone: bool, number: int) -> int:
        return 70_000 if is_alone == is_alone_faster else 100_000

    ways = ways_of_calls(monkeypatch, 1000, time_of)
    assert not any(ways[:15])  # several threads are tried first
    assert ways[20:].count(not is_alone_faster) <= 4 * 8


def test_the_way_changes_with_the_machine_but_not_for_one_interrupted_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def time_of(is_alone: bool, number: int) -> int:
        if number == 300:
            return 10_000_000
        return 70_000 if is_alone == (number > 500) else 100_000

    ways = ways_of_calls(monkeypatch, 1500, time_of)
    assert ways[310:380].count(True) <= 4 + 8
    assert ways[1000:].count(False) <= 4 * 4


def test_an_execution_runs_on_one_thread_where_its_trial_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instance, "_DOUBTFUL_US", 1e9)
    isa, graph = host_isas()[0], convolutions().build()
    code = LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), isa, 2), isa)
    execution = Instance(code)
    (x,) = image().values()
    together, alone = (np.empty(x.shape, np.float32) for _ in range(2))
    monkeypatch.setattr(code.pool, "engage", lambda *_: 1)
    execution.run([x, together])
    assert execution._trial is not None
    monkeypatch.setattr(TeamTrial, "begin", lambda _: True)
    monkeypatch.setattr(code.pool, "engage", None)  # not to be asked
    execution.run([x, alone])
    np.testing.assert_array_equal(alone, together)
    execution.bind([x, alone])
    call = execution.bound_call(None)
    alone[...] = 0
    call()
    np.testing.assert_array_equal(alone, together)
    monkeypatch.setattr(TeamTrial, "begin", lambda _: False)
    asked: list[int] = []

    def engage(num_threads: int, *_: object) -> int:
        asked.append(num_threads)
        return 1

    monkeypatch.setattr(code.pool, "engage", engage)
    call()
    assert asked == [2]
