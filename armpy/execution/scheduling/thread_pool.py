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

# Each keeps its thread, arrays and working memory until its backend returns, if ever.
MOST_ABANDONED = 16
"""Maximum number of threads on abandoned work; beyond it, new work waits for a free thread."""

_IDLE_S = 5.0
"""Seconds that an idle thread waits for a task before it ends."""
_BEGIN_S = 5.0
"""Maximum seconds to wait until a new thread runs."""


class ThreadPool:
    """Threads that run tasks, and end after some idle time.

    A signal handler of the application may raise in any call that the main thread makes here, or
    start executions itself. The main thread therefore only queues tasks and wakes threads; the
    threads, on which no handler runs, keep all counts. `abandon` makes its changes without a call
    in between.
    """

    def __init__(
        self,
        # How many tasks run at the same time, not counting abandoned tasks and those of
        # `run_apart`.
        num_threads: int,
    ) -> None:
        self.num_threads = num_threads
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        """Set the state of a pool without threads."""
        # A fork handler cannot be unregistered, and pools come and go with runtimes.
        self._process_id = os.getpid()
        self._lock = threading.RLock()  # which a signal handler can acquire again
        self._queue = FairQueue()
        self._apart: deque[AnyTask] = deque()
        self._idle: list[_Worker] = []
        self._woken: frozenset[_Worker] = frozenset()  # woken, and not yet at the queue
        self._num_busy = 0
        self._num_abandoned = 0
        self._num_threads = 0
        self._numbers = count(1)

    def submit(self, task: AnyTask) -> None:
        """Run a task when it is its turn.

        Raises InvalidArgumentError if the pool is closed; QueueFullError if no thread can be
        started for it.
        """
        self._check_process()
        with self._lock:
            self._check_open()
            self._queue.put(task)
            worker = self._wake_for_place()
        # Outside the lock, which the new thread needs in order to begin.
        self._await_begin(worker)

    def run_apart(self, task: AnyTask) -> None:
        """Run a task at once, for a waiting caller who may abandon it; errors as for `submit`."""
        self._check_process()
        with self._lock:
            self._check_open()
            if self._num_abandoned < MOST_ABANDONED:
                self._apart.append(task)
                worker = self._wake()
            else:  # it waits like others, and its deadline counts
                self._queue.put(task)
                worker = self._wake_for_place()
        self._await_begin(worker)

    def _check_open(self) -> None:
        """Nothing can be started on a closed runtime."""
        if self._is_closed:
            raise InvalidArgumentError("the runtime is closed", fix="Make another one")

    def _check_process(self) -> None:
        """Reset the pool in a forked process, which has none of its threads."""
        if self._process_id != os.getpid():
            self._reset()

    def close(self) -> None:
        """Take no more tasks; those that wait are still run."""
        with self._lock:
            self._is_closed = True
            # Woken threads find no task and end; busy threads end after their task.
            while self._idle:
                self._wake()

    def _wake_for_place(self) -> _Worker | None:
        """Wake a thread if there is a place for one that none is about to take; with the lock.

        Returns the worker of a new thread, if one was started.
        """
        # Woken threads take tasks of `run_apart` first; only the others take from the queue.
        num_coming = max(len(self._woken) - len(self._apart), 0)
        return self._wake() if self._num_busy + num_coming < self.num_threads else None

    def _wake(self) -> _Worker | None:
        """Let an idle or a new thread take a task; the lock is held."""
        if not self._idle:
            return self._add_worker()
        # Two statements: a signal handler that raises after a `pop` would lose the worker.
        worker = self._idle[-1]
        del self._idle[-1]
        self._woken |= {worker}
        worker.wake.release()
        return None

    def _add_worker(self) -> _Worker | None:
        """Start one more thread, which takes a task at once; the lock is held."""
        worker = _Worker(self)
        try:
            start_daemon(worker.work, f"armpy-executor-{next(self._numbers)}")
        except RuntimeError as error:
            if self._num_threads == 0:  # otherwise the task waits for one of the threads
                raise _no_thread() from error
            return None
        self._woken |= {worker}
        return worker

    def _await_begin(self, worker: _Worker | None) -> None:
        """Wait until a new thread runs: without enough memory it may end silently before that.

        Raises QueueFullError if it does not run, and no other does.
        """
        if worker is None or worker.begun.acquire(timeout=_BEGIN_S):
            return
        with self._lock:
            # Otherwise it would take up a place for ever.
            self._woken -= {worker}
            if self._num_threads == 0:
                raise _no_thread()

    def abandon(self, worker: _Worker, task: AnyTask) -> None:
        """Replace the thread of a task that no caller waits for any more."""
        with self._lock:
            # The thread may already run its next task, which must not be abandoned.
            is_over = worker.task is not task or worker.is_abandoned
            if is_over or self._num_abandoned >= MOST_ABANDONED:
                return
            worker.is_abandoned = True
            self._num_abandoned += 1
            if worker.is_counted:
                worker.is_counted = False
                self._num_busy -= 1
            self._wake_for_place()

    def register(self) -> None:
        """Count one more thread; the thread calls this itself."""
        with self._lock:
            self._num_threads += 1

    def unregister(self, worker: _Worker) -> None:
        """Stop counting a thread, which is about to end."""
        with self._lock:
            self._num_threads -= 1
            self._num_busy -= worker.is_counted
            self._num_abandoned -= worker.is_abandoned
            self._woken -= {worker}
            if worker in self._idle:
                self._idle.remove(worker)

    def next_task(self, worker: _Worker, duration_s: float) -> AnyTask | None:
        """Return the next task for a thread that has finished one; None if there is none."""
        with self._lock:
            if worker.task is not None:
                # Abandoned tasks count as well: their owner used the thread.
                self._queue.add_time(worker.task, duration_s)
            if worker.is_abandoned:  # another thread has taken its place
                worker.is_abandoned = False
                self._num_abandoned -= 1
            if worker.is_counted:
                worker.is_counted = False
                self._num_busy -= 1
            return self.take_task_or_rest(worker)

    def take_task_or_rest(self, worker: _Worker, *, may_leave: bool = False) -> AnyTask | None:
        """Return the next task for an idle thread; without one, the thread rests or ends."""
        with self._lock:
            worker.wake.acquire(blocking=False)  # awake, whether woken or timed out
            self._woken -= {worker}
            if worker in self._idle:
                self._idle.remove(worker)
            # These first: their callers wait, and they take up no place.
            worker.task = self._apart.popleft() if self._apart else None
            if worker.task is None and self._num_busy < self.num_threads:
                worker.task = self._queue.take()
                worker.is_counted = worker.task is not None
                self._num_busy += worker.is_counted
            if worker.task is None:
                worker.is_dismissed = self._is_closed or may_leave
                if not worker.is_dismissed:
                    self._idle.append(worker)
            elif self._queue:  # the caller that queued it may have been interrupted
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
        # Locks instead of Events: a signal handler may raise inside the code of an Event.
        self.wake = threading.Lock()
        self.wake.acquire()
        self.begun = threading.Lock()
        self.begun.acquire()

    def work(self) -> None:
        """Run as one of the pool's threads until it ends."""
        self._pool.register()
        self.begun.release()
        try:
            self._run_tasks()
        finally:  # also if memory is too short to take the next task
            self._pool.unregister(self)

    def _run_tasks(self) -> None:
        """Run tasks until the thread is dismissed."""
        task = self._pool.take_task_or_rest(self)
        while not self.is_dismissed:
            while task is not None:
                started = time.perf_counter()
                task.when_abandoned = partial(self._pool.abandon, self, task)
                _run(task)
                task.when_abandoned = None  # it refers to the task
                task = self._pool.next_task(self, time.perf_counter() - started)
            if not self.is_dismissed:
                is_woken = self.wake.acquire(timeout=_IDLE_S)
                task = self._pool.take_task_or_rest(self, may_leave=not is_woken)


def _no_thread() -> QueueFullError:
    """The error if no thread can be started for a task."""
    return QueueFullError(
        "the execution cannot be started: there is no thread for it",
        fix="Let the process have more threads (ulimit -u), or memory for them",
    )


def _run(task: AnyTask) -> None:
    """Run a task; errors in callbacks of its future are logged and do not end the thread."""
    try:
        task.run()
    except BaseException:  # noqa: BLE001 - even SystemExit, which would end the thread
        _log.exception("a callback of an execution's future has failed")
