"""Whose turn it is where executions wait for a thread."""

from __future__ import annotations

from armpy.execution.scheduling.fair_queue import FairQueue
from armpy.execution.scheduling.stop_signal import CancellationToken
from armpy.execution.scheduling.tasks import ExecutionTask
from armpy.types import Priority


def task(owner: str, priority: Priority = Priority.MEDIUM) -> ExecutionTask[None]:
    return ExecutionTask(lambda _: None, CancellationToken(), priority, owner)


def order(queue: FairQueue, durations_s: dict[str, float] | None = None) -> list[str]:
    """Owners in the order in which they get the one thread, for as long as is said."""
    found = []
    while (taken := queue.take()) is not None:
        owner = str(taken.owner)
        found.append(owner)
        queue.add_time(taken, (durations_s or {}).get(owner, 1.0))
    return found


def test_a_network_that_floods_the_queue_does_not_keep_another_waiting() -> None:
    queue = FairQueue()
    for _ in range(50):
        queue.put(task("busy"))
    for _ in range(3):
        queue.put(task("rare"))
    assert order(queue)[:6].count("rare") == 3


def test_shares_are_of_time_and_not_of_turns() -> None:
    queue = FairQueue()
    for _ in range(40):
        queue.put(task("long"))
        queue.put(task("short"))
    turns = order(queue, {"long": 4.0, "short": 1.0})
    until_short_is_done = turns[: max(i for i, owner in enumerate(turns) if owner == "short") + 1]
    assert 9 <= until_short_is_done.count("long") <= 11  # 40 s in turns of 4 s


def test_higher_priorities_come_first_and_starve_nobody() -> None:
    queue = FairQueue()
    for _ in range(20):
        for priority in (Priority.LOW, Priority.MEDIUM, Priority.HIGH):
            queue.put(task(priority.name, priority))
    turns = order(queue)
    # Arm NN's order, with its expire rate of 3.
    above = ["HIGH", "HIGH", "HIGH", "MEDIUM"] * 3
    assert turns[:16] == [*above, "HIGH", "HIGH", "HIGH", "LOW"]


def test_who_was_away_has_saved_up_nothing() -> None:
    queue = FairQueue()
    for _ in range(10):
        queue.put(task("always"))
    for _ in range(9):
        taken = queue.take()
        assert taken is not None
        queue.add_time(taken, 1.0)
    for _ in range(10):
        queue.put(task("always"))
        queue.put(task("back"))
    assert order(queue)[:8].count("always") >= 3


def test_what_nobody_wants_any_more_is_passed_over() -> None:
    queue = FairQueue()
    dropped = task("dropped")
    queue.put(dropped)
    queue.put(task("wanted"))
    dropped.submitted().cancel()
    assert order(queue) == ["wanted"]
