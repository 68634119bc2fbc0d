"""The order and the number of turns, on subjects whose times a test sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from armpy.errors import BackendError
from armpy_tools.benchmark import (
    BenchmarkProgress,
    BenchmarkResult,
    LayerCost,
    MemoryUse,
    Plan,
    Subject,
    benchmark,
)
from armpy_tools.benchmark.bursts import SubjectTurn, run_burst
from armpy_tools.benchmark.process import PreparedSubject


@dataclass
class Scene:
    """Times of fake subjects, and their requests."""

    run_us: dict[str, float]
    asked: list[tuple[str, str]] = field(default_factory=list)
    runs: list[int | None] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    on_ask: Callable[[str, str], object] = lambda name, order: None

    def start(self, subject: Subject) -> FakeRunning:
        return FakeRunning(self, subject)


class FakeRunning:
    def __init__(self, scene: Scene, subject: Subject) -> None:
        self.scene, self.name = scene, subject.model
        self.callers = subject.callers
        scene.open.add(id(self))

    def _note(self, order: str) -> None:
        self.scene.asked.append((self.name, order))
        self.scene.on_ask(self.name, order)

    def prepare(self, seed: int) -> PreparedSubject:
        self._note("prepare")
        return PreparedSubject(0.5, 0.1, 4 if self.name.startswith("batch") else 1)

    def run(self, seconds: float, runs: int | None, unmeasured: int) -> SubjectTurn:
        self._note("turn" if unmeasured else "warm up")
        if unmeasured:
            self.scene.runs.append(runs)
        count = runs or 10
        us = self.scene.run_us[self.name]
        wall_s = us * count / 1e6
        return SubjectTurn((us,) * (count * self.callers), wall_s, wall_s)

    def describe(self, *, in_full: bool) -> tuple[str, MemoryUse]:
        self._note("describe")
        peak = (9 << 20) if in_full else (1 << 20)  # the first process compiles
        return "all on Fake" if in_full else "", MemoryUse(peak, 1 << 10, 1 << 11)

    def layers(self, runs: int) -> tuple[LayerCost, ...]:
        self._note("layers")
        return ()

    def close(self) -> None:
        self.scene.open.discard(id(self))


QUICK = Plan(seconds=0.01, processes=3)


def measured(
    scene: Scene,
    plan: Plan = QUICK,
    on_progress: Callable[[BenchmarkProgress], object] | None = None,
) -> BenchmarkResult:
    subjects = [Subject(name) for name in scene.run_us]
    return benchmark(subjects, plan, start=scene.start, on_progress=on_progress)


def test_subjects_take_turns_in_an_order_and_in_its_opposite() -> None:
    scene = Scene({"a": 100.0, "b": 100.0, "c": 100.0})
    measured(scene, Plan(runs=36, processes=1))
    turns = [name for name, order in scene.asked if order == "turn"]
    rounds = [turns[n : n + 3] for n in range(0, len(turns), 3)]
    assert len(rounds) == 12
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert all(rounds[n + 1] == rounds[n][::-1] for n in range(0, 12, 2))
    assert len({tuple(order) for order in rounds}) > 2


@pytest.mark.parametrize(("runs", "processes"), [(36, 1), (100, 5), (7, 3), (1, 1), (2, 5)])
def test_as_many_runs_are_made_as_were_asked_for(runs: int, processes: int) -> None:
    scene = Scene({"a": 100.0})
    result = measured(scene, Plan(runs=runs, processes=processes))
    latency = result.subjects[0].latency
    assert latency is not None
    assert latency.runs == runs
    assert sum(filter(None, scene.runs)) == runs


def test_a_subject_1_2_times_as_slow_comes_out_so_and_an_equal_one_does_not() -> None:
    result = measured(Scene({"base": 100.0, "slow": 120.0, "same": 100.0}))
    base, slow, same = result.subjects
    assert base.ratio is None
    assert slow.ratio is not None
    assert slow.ratio.verdict == "slower"
    assert slow.ratio.value == pytest.approx(100 / 120)
    assert same.ratio is not None
    assert same.ratio.verdict == "no difference shown"


def test_ratios_are_of_items_where_batches_differ() -> None:
    result = measured(Scene({"one": 100.0, "batch of 4": 200.0}))
    ratio = result.subjects[1].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(2.0)  # 4 items in the time of two
    assert result.subjects[1].per_second == pytest.approx(4 / 200e-6)


def test_callers_are_compared_by_what_all_do_together() -> None:
    scene = Scene({"one": 100.0, "eight": 400.0})
    subjects = [Subject("one"), Subject("eight", callers=8)]
    result = benchmark(subjects, QUICK, start=scene.start)
    ratio = result.subjects[1].ratio
    assert ratio is not None
    # Each of eight takes four times as long: twice as much is done, as the fake's wall time says.
    assert ratio.value == pytest.approx(2.0)


def test_every_process_is_fresh_and_all_are_closed() -> None:
    scene = Scene({"a": 100.0, "b": 100.0})
    result = measured(scene)
    assert scene.asked.count(("a", "prepare")) == 3
    assert scene.asked.count(("a", "describe")) == 3
    assert result.subjects[0].memory == MemoryUse(1 << 20, 1 << 10, 1 << 11)
    assert result.subjects[0].placement == "all on Fake"
    assert not scene.open
    assert result.processes == 3
    assert result.subjects[0].load_ms == (500.0, 500.0, 500.0)


def test_a_failing_subject_is_reported_and_the_others_go_on() -> None:
    def fail(name: str, order: str) -> None:
        if name == "bad" and order == "prepare":
            raise BackendError("no memory left", where="Npu")

    scene = Scene({"good": 100.0, "bad": 100.0}, on_ask=fail)
    good, bad = measured(scene).subjects
    assert "no memory left" in bad.failure
    assert bad.latency is None
    assert bad.ratio is None
    assert good.latency is not None
    assert scene.asked.count(("bad", "prepare")) == 1
    assert not scene.open


def test_what_was_measured_until_an_interrupt_is_kept() -> None:
    scene = Scene({"a": 100.0, "b": 120.0})

    def interrupt(name: str, order: str) -> None:
        if [action for _, action in scene.asked].count("turn") == 12:
            raise KeyboardInterrupt

    scene.on_ask = interrupt
    result = measured(scene, Plan(runs=36, processes=1))
    assert result.interrupted
    assert result.processes == 0
    assert "Stopped early" in result.notes[0]
    latencies = [subject.latency for subject in result.subjects]
    assert all(latencies)
    assert not scene.open


def test_a_turn_lasts_for_its_time_by_the_clock() -> None:
    now = [0.0]

    def call() -> None:
        now[0] += 0.002

    burst = run_burst([call], 0.01, now=lambda: now[0], computed=lambda: now[0])
    assert burst.runs == 5
    assert burst.durations_us == pytest.approx([2000.0] * 5)
    assert burst.wall_s == pytest.approx(0.01)
    assert burst.processors_s == pytest.approx(0.01)


def test_runs_ahead_of_a_turn_do_not_count() -> None:
    calls: list[int] = []
    burst = run_burst([lambda: calls.append(0)], 0.0, 3, unmeasured=2)
    assert (len(calls), burst.runs) == (5, 3)


def test_an_error_of_a_caller_is_raised_and_stops_the_others() -> None:
    def broken() -> None:
        raise BackendError("it broke", where="Npu")

    with pytest.raises(BackendError, match="it broke"):
        run_burst([lambda: None, broken], 0.0, 2, unmeasured=1)
