"""Executors: the threads of a runtime that run executions which were started and not called."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.execution.scheduling.fair_queue import AnyJob
    from armpy.execution.scheduling.thread_pool import Crew


def default_num_executors() -> int:
    """Threads that a runtime has if nobody says how many: as many as processors, 2 to 4."""
    return min(max(os.cpu_count() or 1, 2), 4)


class Executors:
    """Threads that run jobs; they start when there is something to do.

    Parameters
    ----------
    num_threads : int, optional
        How many jobs run at the same time, those that were abandoned and those of `run_apart` not
        counted.

    Notes
    -----
    Threads end when there is nothing to do for a while, and with the last reference to this.
    """

    def __init__(self, num_threads: int | None = None) -> None:
        self._num_threads = num_threads or default_num_executors()
        self._crew: Crew | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def submit(self, job: AnyJob) -> None:
        """Run a job when it is its turn.

        Raises
        ------
        InvalidArgumentError
            If they are closed.
        """
        self._open().submit(job)

    def run_apart(self, job: AnyJob) -> None:
        """Run a job now, for a caller who waits and may give it up; errors as for `submit`."""
        self._open().run_apart(job)

    def _open(self) -> Crew:
        """The threads, which most programs do not need."""
        crew = self._crew
        if crew is None:
            from armpy.execution.scheduling.thread_pool import Crew  # noqa: PLC0415 - futures are slow to import

            with self._lock:
                if self._is_closed:
                    raise InvalidArgumentError("the runtime is closed", fix="Make another one")
                crew = self._crew
                if crew is None:
                    crew = self._crew = Crew(self._num_threads)
                    weakref.finalize(self, crew.close)
        return crew

    def close(self) -> None:
        """Take no more jobs; those that wait are still run."""
        with self._lock:
            self._is_closed = True
            if self._crew is not None:
                self._crew.close()
