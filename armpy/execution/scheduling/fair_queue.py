"""Queue of tasks with priorities, and fair shares between the networks of each."""

from __future__ import annotations

from collections import deque
from typing import Any

from armpy.execution.scheduling.tasks import ExecutionTask
from armpy.types import Priority

MOST_IN_A_ROW = 3
"""So many of a priority come before those of lower ones, if there are any; Arm NN's expire rate."""

_MOST_OWNERS = 256
"""Whose times are remembered."""

_LEVELS = (Priority.HIGH, Priority.MEDIUM, Priority.LOW)

AnyTask = ExecutionTask[Any]  # Any: tasks of all results wait in one queue


class _PriorityLevel:
    """The tasks of one priority, by owner.

    Next is the caller that has had the threads for the least time. One that was away begins where
    the others are, as time that was not used is not saved up.
    """

    def __init__(self) -> None:
        self._waiting: dict[object, deque[AnyTask]] = {}
        self._used_s: dict[object, float] = {}
        self._least_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, task: AnyTask) -> None:
        """Add a task after its owner's others."""
        owner = task.owner
        if owner not in self._waiting:
            used_s = max(self._used_s.get(owner, 0.0), self._least_s)
            if len(self._used_s) > _MOST_OWNERS:  # most of them are gone
                waiting = [*self._waiting]
                self._used_s = {owner: self._used_s[owner] for owner in waiting}
            self._used_s[owner] = used_s  # before it waits, as each owner that waits has a time
        self._waiting.setdefault(owner, deque()).append(task)

    def take(self) -> AnyTask | None:
        """The next task; None if the next caller has none after all."""
        owner = min(self._waiting, key=self._used_s.__getitem__)
        tasks = self._waiting[owner]
        # `put` may have been interrupted when the owner's queue was there and its task was not.
        task = tasks.popleft() if tasks else None
        self._least_s = self._used_s[owner]
        if not tasks:
            del self._waiting[owner]
        return task

    def add_time(self, owner: object, duration_s: float) -> None:
        """Say how long an owner's task has had a thread."""
        # It may have been forgotten since: only `_MOST_OWNERS` are remembered.
        if owner in self._used_s:
            self._used_s[owner] += duration_s


class FairQueue:
    """Tasks that wait for a thread.

    Higher priorities come first, but not for ever: after `MOST_IN_A_ROW` tasks of one comes
    one of a lower priority, so that no task waits without end.

    Tasks are put on any thread, of which the main one may be interrupted by a signal handler that
    raises, at any call: `put` leaves everything in order then. They are taken on the pool's.

    References
    ----------
    Arm NN Threadpool.
    """

    def __init__(self) -> None:
        self._levels = {priority: _PriorityLevel() for priority in _LEVELS}
        self._in_a_row = dict.fromkeys(_LEVELS, 0)

    def __bool__(self) -> bool:
        return any(self._levels.values())

    def put(self, task: AnyTask) -> None:
        """Add a task."""
        self._levels[task.priority].put(task)

    def take(self) -> AnyTask | None:
        """The next task that is still wanted; None if there is none."""
        while True:
            priority = self._next_priority()
            if priority is None:
                return None
            task = self._levels[priority].take()
            # Stopped ones lie here until their turn: so `stop` needs no lock of the queue's.
            if task is not None and task.is_waiting:
                # Those above may begin anew.
                for higher in _LEVELS[: _LEVELS.index(priority)]:
                    self._in_a_row[higher] = 0
                self._in_a_row[priority] += 1
                return task

    def _next_priority(self) -> Priority | None:
        """Return the priority whose turn it is."""
        waiting = [priority for priority in _LEVELS if self._levels[priority]]
        # The lowest that waits has no limit, as no task is below it.
        for priority in waiting[:-1]:
            if self._in_a_row[priority] < MOST_IN_A_ROW:
                return priority
        return waiting[-1] if waiting else None

    def add_time(self, task: AnyTask, duration_s: float) -> None:
        """Say how long a task has had a thread."""
        self._levels[task.priority].add_time(task.owner, duration_s)
