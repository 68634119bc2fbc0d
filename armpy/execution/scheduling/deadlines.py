"""Deadlines: one thread of the process stops what takes too long."""

from __future__ import annotations

import heapq
import logging
import os
import threading
import time
from collections.abc import Callable
from itertools import count

from armpy.execution.scheduling.daemons import start_daemon

# Calls with deadlines come in series: a thread for each would cost more than one that sleeps.
_IDLE_S = 5.0
"""How long the thread waits for another deadline before it ends."""

_LONGEST_S = 3600.0
"""How long the thread sleeps at most: locks cannot wait for any number of seconds."""

_log = logging.getLogger("armpy.execution")

_FEW = 64
"""So many watches that are over may lie about."""


class Watch:
    """One deadline.

    Parameters
    ----------
    deadline_s : float
        By `time.perf_counter`.
    stop : callable
        Called by the thread when it has come; quick, and raises nothing.
    """

    __slots__ = ("deadline_s", "stop")

    def __init__(self, deadline_s: float, stop: Callable[[], object]) -> None:
        self.deadline_s = deadline_s
        self.stop: Callable[[], object] | None = stop


class Deadlines:
    """Watches by time, and the thread that waits for the next one.

    The thread is there only while there is something to watch, and a little longer. A process that
    forks goes on without it in the child.
    """

    def __init__(self) -> None:
        self._numbers = count()  # of two deadlines at the same time, the first comes first
        self._reset()
        if hasattr(os, "register_at_fork"):
            # A lock that another thread held at the fork stays locked for ever in the child.
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin without a thread."""
        # The lock itself and no Condition, in whose own code a signal handler may raise and leave
        # it locked for good; an RLock, as a handler may execute something itself.
        self._lock = threading.RLock()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._heap: list[tuple[float, int, Watch]] = []
        self._num_over = 0
        self._is_waiting = False

    def begin(self, watch: Watch) -> None:
        """Stop something when its deadline has come.

        Raises RuntimeError if there can be no thread, as in interpreters that allow none which end
        with them.
        """
        with self._lock:
            heapq.heappush(self._heap, (watch.deadline_s, next(self._numbers), watch))
            if not self._is_waiting:
                # A daemon: deadlines that are far away do not keep the process from ending.
                start_daemon(self._wait, "armpy-deadlines")
                self._is_waiting = True  # in this order: a signal handler may raise in between
            # Only the earliest deadline shortens the sleep; a lock that is open cannot be released.
            elif self._heap[0][2] is watch and self._wake.locked():
                self._wake.release()

    def end(self, watch: Watch) -> None:
        """Forget something that has come to its end."""
        # It drops the task that `stop` is bound to, however long the watch stays in the heap.
        watch.stop = None
        with self._lock:
            # To take one out of a heap's middle means to look at all, so they go many at a time.
            self._num_over += 1
            if self._num_over > max(_FEW, len(self._heap) // 2):
                heap = [entry for entry in self._heap if entry[2].stop is not None]
                heapq.heapify(heap)
                self._heap, self._num_over = heap, 0

    def _wait(self) -> None:
        """Run the thread."""
        while True:
            with self._lock:
                left_s = self._heap[0][0] - time.perf_counter() if self._heap else _IDLE_S
                stop = heapq.heappop(self._heap)[2].stop if left_s <= 0 else None
            if stop is not None:
                # Without the lock: stopped work takes locks of its own, and ends watches.
                _call(stop)
            if left_s <= 0 or self._wake.acquire(timeout=min(left_s, _LONGEST_S)):
                continue
            with self._lock:
                # Looked at again: a watch may have come between the end of the sleep and this lock.
                if not self._heap:
                    self._is_waiting = False
                    return


def _call(stop: Callable[[], object]) -> None:
    """Stop something; what its caller's own callbacks raise is nothing to the others."""
    try:
        stop()
    except BaseException:  # noqa: BLE001 - even SystemExit, which would end the thread
        _log.exception("the function called at a deadline has failed")


deadlines = Deadlines()
"""Those of the process."""
