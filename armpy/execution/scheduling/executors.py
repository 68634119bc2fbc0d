"""Executors: the threads of a runtime that run executions which were started and not called."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.execution.scheduling.fair_queue import AnyTask
    from armpy.execution.scheduling.thread_pool import ThreadPool


def default_num_executors() -> int:
    """Threads that a runtime has by default: as many as processors, 2 to 4."""
    return min(max(os.cpu_count() or 1, 2), 4)


class Executors:
    """Threads that run tasks; they start when there is something to do.

    Threads end when there is nothing to do for a while, and with the last reference to this.
    """

    def __init__(
        self,
        # How many tasks run at the same time, those that were abandoned and those of `run_apart`
        # not counted.
        num_threads: int | None = None,
    ) -> None:
        self._num_threads = num_threads or default_num_executors()
        self._pool: ThreadPool | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def submit(self, task: AnyTask) -> None:
        """Run a task when it is its turn; raises InvalidArgumentError if they are closed."""
        self._open().submit(task)

    def run_apart(self, task: AnyTask) -> None:
        """Run a task now, for a caller that waits and may give it up; errors as for `submit`."""
        self._open().run_apart(task)

    def _open(self) -> ThreadPool:
        """The threads, which most programs do not need."""
        # Without the lock, as all calls but the first find it here.
        pool = self._pool
        if pool is None:
            # Futures are slow to import.
            from armpy.execution.scheduling.thread_pool import ThreadPool  # noqa: PLC0415

            with self._lock:
                if self._is_closed:
                    raise InvalidArgumentError("the runtime is closed", fix="Make another one")
                # Asked again: another thread may have made it since.
                pool = self._pool
                if pool is None:
                    pool = self._pool = ThreadPool(self._num_threads)
                    # The threads keep the pool; when this object ends, no task comes any more.
                    weakref.finalize(self, pool.close)
        return pool

    def close(self) -> None:
        """Take no more tasks; those that wait are still run."""
        with self._lock:
            self._is_closed = True
            if self._pool is not None:
                self._pool.close()
