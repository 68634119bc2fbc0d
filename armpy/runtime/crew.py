"""Crew: the threads behind `armpy.runtime.executors`."""

from __future__ import annotations

import logging
import os
import threading
import time
from itertools import count

from armpy.errors import InvalidArgumentError
from armpy.runtime.fair_queue import AnyJob, FairQueue

_log = logging.getLogger("armpy.runtime")

MOST_ABANDONED = 16
"""So many threads may be busy with work that was abandoned before others have to wait for them."""

_IDLE_S = 5.0
"""How long a thread waits for more to do before it ends."""


class Crew:
    """Threads that run jobs, and end when there is nothing to do for a while.

    Parameters
    ----------
    num_threads : int
        How many jobs run at the same time, those that were abandoned and those of `run_apart` not
        counted.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        """Begin without threads."""
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        self._queue = FairQueue()
        self._idle: list[_Worker] = []
        self._num_busy = 0
        self._num_abandoned = 0
        self._numbers = count(1)

    def submit(self, job: AnyJob) -> None:
        """Run a job when it is its turn.

        Raises
        ------
        InvalidArgumentError
            If nothing more is taken.
        """
        self._check_process()
        with self._lock:
            self._check_open()
            self._enqueue(job)

    def run_apart(self, job: AnyJob) -> None:
        """Run a job now, for a caller who waits and may give it up; errors as for `submit`."""
        self._check_process()
        with self._lock:
            self._check_open()
            if self._num_abandoned < MOST_ABANDONED:
                self._hand(job, is_counted=False)
            else:  # it waits like others, and its deadline counts
                self._enqueue(job)

    def _enqueue(self, job: AnyJob) -> None:
        """Let a job have a place, or wait for one; the lock is held."""
        if self._num_busy < self.num_threads:
            self._num_busy += 1
            self._hand(job, is_counted=True)
        else:
            self._queue.put(job)

    def _check_open(self) -> None:
        """Nothing can be started on a closed runtime."""
        if self._is_closed:
            raise InvalidArgumentError("the runtime is closed", fix="Make another one")

    def _check_process(self) -> None:
        """Begin without threads in a process that was forked: it has none."""
        if self._process_id != os.getpid():
            self._reset()

    def close(self) -> None:
        """Take no more jobs; those that wait are still run."""
        with self._lock:
            self._is_closed = True
            for worker in self._idle:
                worker.wake.release()
            self._idle.clear()

    def _hand(self, job: AnyJob, *, is_counted: bool) -> None:
        """Let an idle thread run a job, or a new one; the lock is held."""
        if self._idle:
            worker = self._idle.pop()
            worker.job, worker.is_counted = job, is_counted
            worker.wake.release()
        else:
            worker = _Worker(self, job, is_counted, next(self._numbers))
            worker.thread.start()

    def abandon(self, worker: _Worker) -> None:
        """Let somebody else work in the place of a thread whose job nobody waits for any more."""
        with self._lock:
            if worker.is_abandoned or self._num_abandoned >= MOST_ABANDONED:
                return
            worker.is_abandoned = True
            self._num_abandoned += 1
            if worker.is_counted:
                self._leave()

    def _leave(self) -> None:
        """Let the next job have a place that has become free; the lock is held."""
        job = self._queue.take()
        if job is None:
            self._num_busy -= 1
        else:
            self._hand(job, is_counted=True)

    def next_job(self, worker: _Worker, done: AnyJob, duration_s: float) -> AnyJob | None:
        """What a thread does next, if there is anything."""
        with self._lock:
            self._queue.add_time(done, duration_s)
            worker.job = None
            is_free = worker.is_counted
            if worker.is_abandoned:  # its place is somebody else's by now
                worker.is_abandoned = False
                self._num_abandoned -= 1
                is_free = self._num_busy < self.num_threads
                self._num_busy += is_free
            if is_free:
                worker.is_counted = True
                worker.job = self._queue.take()
                self._num_busy -= worker.job is None
            if worker.job is None:
                self._rest(worker)
            return worker.job

    def _rest(self, worker: _Worker) -> None:
        """Let a thread wait for more to do; the lock is held."""
        if self._is_closed:
            worker.wake.release()
        else:
            self._idle.append(worker)

    def is_dismissed(self, worker: _Worker) -> bool:
        """Whether a thread that has waited long enough may end."""
        with self._lock:
            if worker.job is not None:
                return False
            if worker in self._idle:
                self._idle.remove(worker)
            return True


class _Worker:
    """One thread."""

    def __init__(self, crew: Crew, job: AnyJob, is_counted: bool, number: int) -> None:
        self._crew = crew
        self.job: AnyJob | None = job
        self.is_counted = is_counted
        self.is_abandoned = False
        self.wake = threading.Lock()
        self.wake.acquire()
        # A daemon: work that was abandoned does not keep the process from ending.
        self.thread = threading.Thread(
            target=self._work, name=f"armpy-executor-{number}", daemon=True
        )

    def _work(self) -> None:
        """What the thread does."""
        while True:
            job = self.job
            while job is not None:
                started = time.perf_counter()
                job.when_abandoned = self._abandon
                _run(job)
                job = self._crew.next_job(self, job, time.perf_counter() - started)
            # Who hands it a job takes it off the idle ones first.
            self.wake.acquire(timeout=_IDLE_S)
            if self.job is None and self._crew.is_dismissed(self):
                return

    def _abandon(self) -> None:
        """Go on without this thread."""
        self._crew.abandon(self)


def _run(job: AnyJob) -> None:
    """Run a job; what a callback of its future raises does not cost the others a thread."""
    try:
        job.run()
    except BaseException:  # noqa: BLE001 - even SystemExit, which would end the thread
        _log.exception("a callback of an execution's future has failed")
