"""Thread pool: the threads of `armpy.execution.scheduling.executors`."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from functools import partial
from itertools import count

from armpy.errors import InvalidArgumentError, QueueFullError
from armpy.execution.scheduling.daemons import start_daemon
from armpy.execution.scheduling.fair_queue import AnyTask, FairQueue

_log = logging.getLogger("armpy.execution")

# Each keeps its thread, arrays and working memory until its backend comes back, if ever.
MOST_ABANDONED = 16
"""So many threads may be busy with work that was abandoned before others have to wait for them."""

_IDLE_S = 5.0
"""How long a thread waits for more to do before it ends."""
_BEGIN_S = 5.0
"""How long is waited for a new thread to run."""


class ThreadPool:
    """Threads that run tasks, and end when there is nothing to do for a while.

    Parameters
    ----------
    num_threads : int
        How many tasks run at the same time, those that were abandoned and those of `run_apart` not
        counted.

    Notes
    -----
    A signal handler of the application's may raise at any call that the main thread makes in here,
    or start executions itself. So tasks are only put where the threads look for them, and a thread
    is woken; all counting is the threads' own, on which no handler runs. What `abandon` changes, it
    changes without a call in between.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        """Begin without threads."""
        # A fork handler could never be taken back, and pools come and go with runtimes.
        self._process_id = os.getpid()
        self._lock = threading.RLock()  # which a handler can have once more
        self._queue = FairQueue()
        self._apart: deque[AnyTask] = deque()
        self._idle: list[_Worker] = []
        self._woken: frozenset[_Worker] = frozenset()  # and have not looked yet
        self._num_busy = 0
        self._num_abandoned = 0
        self._num_threads = 0
        self._numbers = count(1)

    def submit(self, task: AnyTask) -> None:
        """Run a task when it is its turn.

        Raises
        ------
        InvalidArgumentError
            If nothing more is taken.
        QueueFullError
            If the process can have no thread for it.
        """
        self._check_process()
        with self._lock:
            self._check_open()
            self._queue.put(task)
            made = self._wake_for_place()
        # Outside the lock, which the new thread needs in order to begin.
        self._await_begin(made)

    def run_apart(self, task: AnyTask) -> None:
        """Run a task now, for a caller who waits and may give it up; errors as for `submit`."""
        self._check_process()
        with self._lock:
            self._check_open()
            if self._num_abandoned < MOST_ABANDONED:
                self._apart.append(task)
                made = self._wake()
            else:  # it waits like others, and its deadline counts
                self._queue.put(task)
                made = self._wake_for_place()
        self._await_begin(made)

    def _check_open(self) -> None:
        """Nothing can be started on a closed runtime."""
        if self._is_closed:
            raise InvalidArgumentError("the runtime is closed", fix="Make another one")

    def _check_process(self) -> None:
        """Begin without threads in a process that was forked: it has none."""
        if self._process_id != os.getpid():
            self._reset()

    def close(self) -> None:
        """Take no more tasks; those that wait are still run."""
        with self._lock:
            self._is_closed = True
            # Who is woken finds nothing, and ends; who is busy does so later.
            while self._idle:
                self._wake()

    def _wake_for_place(self) -> _Worker | None:
        """Wake a thread if there is a place for one that none is about to take; with the lock.

        Returns
        -------
        _Worker or None
            What is to begin with a new thread.
        """
        # Who is woken looks at what is apart first; only the others come for the queue.
        num_coming = max(len(self._woken) - len(self._apart), 0)
        return self._wake() if self._num_busy + num_coming < self.num_threads else None

    def _wake(self) -> _Worker | None:
        """Let an idle thread look for a task, or a new one; the lock is held."""
        if not self._idle:
            return self._add_worker()
        # Two statements: a signal handler that raises after a `pop` would lose the worker.
        worker = self._idle[-1]
        del self._idle[-1]
        self._woken |= {worker}
        worker.wake.release()
        return None

    def _add_worker(self) -> _Worker | None:
        """Start one more thread, which looks for a task at once; the lock is held."""
        worker = _Worker(self)
        try:
            start_daemon(worker.work, f"armpy-executor-{next(self._numbers)}")
        except RuntimeError as error:
            if self._num_threads == 0:  # else it waits for one of these
                raise _no_thread() from error
            return None
        self._woken |= {worker}
        return worker

    def _await_begin(self, made: _Worker | None) -> None:
        """Wait until a new thread runs: it may end before for want of memory, and say nothing.

        Raises
        ------
        QueueFullError
            If it does not run, and no other does.
        """
        if made is None or made.begun.acquire(timeout=_BEGIN_S):
            return
        with self._lock:
            # Counted as coming, it would take up a place for ever.
            self._woken -= {made}
            if self._num_threads == 0:
                raise _no_thread()

    def abandon(self, worker: _Worker, task: AnyTask) -> None:
        """Start a thread in the place of one whose task no caller waits for any more."""
        with self._lock:
            # The thread may have gone on to its next task, which is not to be abandoned.
            is_over = worker.task is not task or worker.is_abandoned
            if is_over or self._num_abandoned >= MOST_ABANDONED:
                return
            worker.is_abandoned = True
            self._num_abandoned += 1
            if worker.is_counted:
                worker.is_counted = False
                self._num_busy -= 1
            self._wake_for_place()

    def begin(self) -> None:
        """Count a thread, which says so itself."""
        with self._lock:
            self._num_threads += 1

    def end(self, worker: _Worker) -> None:
        """Count a thread no more."""
        with self._lock:
            self._num_threads -= 1
            self._num_busy -= worker.is_counted
            self._num_abandoned -= worker.is_abandoned
            self._woken -= {worker}
            if worker in self._idle:
                self._idle.remove(worker)

    def next_task(self, worker: _Worker, duration_s: float) -> AnyTask | None:
        """Return the next task of a thread that has done its task, if there is any."""
        with self._lock:
            if worker.task is not None:
                # Also when it was abandoned: it is its owner's work that took the thread.
                self._queue.add_time(worker.task, duration_s)
            if worker.is_abandoned:  # another thread has its place by now
                worker.is_abandoned = False
                self._num_abandoned -= 1
            if worker.is_counted:
                worker.is_counted = False
                self._num_busy -= 1
            return self.look(worker)

    def look(self, worker: _Worker, *, may_leave: bool = False) -> AnyTask | None:
        """Look for a task on an idle thread, which rests or leaves if there is none."""
        with self._lock:
            worker.wake.acquire(blocking=False)  # it is awake, if it woke by itself as well
            self._woken -= {worker}
            if worker in self._idle:
                self._idle.remove(worker)
            # First: its caller waits for it, and it takes up no place.
            worker.task = self._apart.popleft() if self._apart else None
            if worker.task is None and self._num_busy < self.num_threads:
                worker.task = self._queue.take()
                worker.is_counted = worker.task is not None
                self._num_busy += worker.is_counted
            if worker.task is None:
                worker.is_dismissed = self._is_closed or may_leave
                if not worker.is_dismissed:
                    self._idle.append(worker)
            elif self._queue:  # its caller may have been interrupted
                self._wake_for_place()
            return worker.task


class _Worker:
    """The work of one thread."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self.task: AnyTask | None = None
        self.is_counted = False
        self.is_abandoned = False
        self.is_dismissed = False
        # Locks and no Events, in whose own code a signal handler may raise.
        self.wake = threading.Lock()
        self.wake.acquire()
        self.begun = threading.Lock()
        self.begun.acquire()

    def work(self) -> None:
        """Be one of the pool's threads."""
        self._pool.begin()
        self.begun.release()
        try:
            self._run_tasks()
        finally:  # also where there is no memory even to look for the next task
            self._pool.end(self)

    def _run_tasks(self) -> None:
        """Run tasks until there are none for a while."""
        task = self._pool.look(self)
        while not self.is_dismissed:
            while task is not None:
                started = time.perf_counter()
                task.when_abandoned = partial(self._pool.abandon, self, task)
                _run(task)
                task.when_abandoned = None  # which keeps it
                task = self._pool.next_task(self, time.perf_counter() - started)
            if not self.is_dismissed:
                is_woken = self.wake.acquire(timeout=_IDLE_S)
                task = self._pool.look(self, may_leave=not is_woken)


def _no_thread() -> QueueFullError:
    """The error for a task that there is no thread for."""
    return QueueFullError(
        "the execution cannot be started: there is no thread for it",
        fix="Let the process have more threads (ulimit -u), or memory for them",
    )


def _run(task: AnyTask) -> None:
    """Run a task; what a callback of its future raises does not cost the others a thread."""
    try:
        task.run()
    except BaseException:  # noqa: BLE001 - even SystemExit, which would end the thread
        _log.exception("a callback of an execution's future has failed")
