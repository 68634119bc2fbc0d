"""Layout of the memory by which a process's executions share its processors.

Notes
-----
Executions that take long ask an arbiter for cores. An execution that is alone has as many workers
as it wants; if there are several, each has its share of the processors, and one that has more lets
workers go between two commands. There are seats for a few more executions than processors; those
that come then wait in a queue, asleep, and go in as they came.
"""

from __future__ import annotations

from armpy_numba_acc.machine.layout import MemoryLayout, Pointer, num_words


class CoreArbiter(MemoryLayout):
    """Arbiter of the cores. Python writes `limit`, `seats` and `num_workers` only.

    Parameters
    ----------
    lock : int
        1 while a thread changes the fields below.
    limit : int
        Threads that compute at a time if there are several executions: processors.
    seats : int
        Executions that may be under way. Not `limit`: one that is waked takes a while to
        come, above all if other processes are busy. With 2 processors and 8 callers, 2 seats took
        0.6 to 0.85 of what 5 did, 3 seats 0.65 to 0.9, and 100 the same or less.
    num_workers : int
        Threads that there are beside those that call.
    running : int
        Threads that executions have which are under way.
    active, waiting : int
        Executions that are under way, and that wait.
    first, last : Pointer
        The `armpy_numba_acc.machine.execution.ExecutionRecord` that has waited longest, which knows
        the one after it, and the last one; 0 if none waits.
    crowd, peak, since : int
        The most executions at a time in a window of `WINDOW_NS`, and so far in the next one, which
        began at this time.
    """

    lock: int
    limit: int
    seats: int
    num_workers: int
    running: int
    active: int
    waiting: int
    first: Pointer
    last: Pointer
    crowd: int
    peak: int
    since: int


ARBITER_BYTES = 128
"""Room for a `CoreArbiter`, in cache lines of its own."""

LOCK, LIMIT, SEATS, NUM_WORKERS, RUNNING, ACTIVE, WAITING, FIRST, LAST, CROWD, PEAK, SINCE = range(
    num_words(CoreArbiter)
)
"""Which word is which."""

WINDOW_NS = 2_000_000
"""An execution that meets no other one is not taken to be alone if there was one just before."""

WAIT_US = 4000
"""Those who wait look so often whether they have been cancelled."""
