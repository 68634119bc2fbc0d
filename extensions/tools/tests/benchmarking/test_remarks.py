from __future__ import annotations

import pytest

from armpy_tools.benchmark import MachineState, Plan, Subject
from armpy_tools.benchmark.machine import MachineLoad
from armpy_tools.benchmark.remarks import remarks_on_all, remarks_on_subject
from armpy_tools.measure.latency import latency_of

STEADY = latency_of([1000.0, 1010.0] * 20)


@pytest.mark.parametrize(
    ("others", "load", "words"),
    [
        (1.2, 0.0, "other processes took 1.2 of 2 processors"),
        (0.1, 9.0, ""),  # the load before is not the load during the runs
        (None, 3.5, "busy before: 3.5 processes for 2 processors"),
        (None, 1.0, ""),
    ],
)
def test_a_busy_machine_is_reported(others: float | None, load: float, words: str) -> None:
    state = MachineState("a machine", 2, load, others)
    notes = remarks_on_all(state, Plan(), 5, interrupted=False)
    assert bool(notes) == bool(words)
    assert words in "".join(notes)


@pytest.mark.parametrize(
    ("durations_us", "words"),
    [
        ([1000.0, 2000.0] * 20, "runs vary a lot: half of them by more than 33% of the median"),
        ([1000.0] * 97 + [9000.0] * 3, "one run in a hundred takes 9.0 times the median"),
        ([1000.0] * 5, "5 runs are few"),
        ([1000.0] * 100, ""),
    ],
)
def test_untrustworthy_runs_are_reported(durations_us: list[float], words: str) -> None:
    notes = remarks_on_subject(Subject("a"), latency_of(durations_us), [10.0, 10.0])
    assert bool(notes) == bool(words)
    assert words in "".join(notes)


def test_callers_that_share_threads_are_reported_for_armpy_alone() -> None:
    shared = Subject("a", num_threads=2, callers=4)
    assert "callers share" in "".join(remarks_on_subject(shared, STEADY, []))
    for other in (
        Subject("a", num_threads=1, callers=4),
        Subject("a", engine="litert", num_threads=2, callers=4),
    ):
        assert remarks_on_subject(other, STEADY, []) == ()


def test_what_others_compute_is_what_the_machine_was_busy_with_beside() -> None:
    busy = iter([10.0, 15.0])
    load = MachineLoad(lambda: next(busy))
    load.begin()
    load.end(wall_s=4.0, own_s=3.0)
    assert load.state.others == 0.5  # (15 - 10 - 3) / 4


def test_load_of_others_is_unknown_where_the_system_does_not_report_it() -> None:
    load = MachineLoad(lambda: None)
    load.begin()
    load.end(1.0, 1.0)
    assert load.state.others is None
