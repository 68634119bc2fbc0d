"""The workers that all networks of a process share.

Notes
-----
Workers are Python's threads that stay in native code, without the interpreter's lock: they sleep
there once they have had nothing to do for a while, and leaders wake them. Executions share them as
`armpy_numba_acc.machine.core_arbiter` says.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
import weakref
from _thread import start_new_thread
from typing import TYPE_CHECKING

import numpy as np

from armpy_numba_acc.machine import core_arbiter
from armpy_numba_acc.machine.alignment import address_of, aligned
from armpy_numba_acc.machine.execution import (
    ACQUIRE,
    ASLEEP,
    NATIVE_ID,
    OWNER,
    SLEEP_LOCK,
    STOP,
    TICKET_BYTES,
)
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.cores import (
    MOST_THREADS,
    current_processor,
    keep_off,
    usable_cores,
)
from armpy_numba_acc.native.python_function import (
    address_of_interpreters,
    free_lock,
    new_lock,
    release_lock,
)

if TYPE_CHECKING:  # native code is imported where there is some to load
    from armpy_numba_acc.native.image import LoadedImage

TICKET_WORDS = TICKET_BYTES // 8
"""Integers of a ticket."""

_ASLEEP, _OWNER, _STOP, _SLEEP_LOCK, _ACQUIRE, _NATIVE_ID = (
    offset // 8 for offset in (ASLEEP, OWNER, STOP, SLEEP_LOCK, ACQUIRE, NATIVE_ID)
)

WORKER = Kernel("worker", (1 << 13,))
"""Looks for more to do for 0.2 ms (Zen 4) before it sleeps. Waking it makes a call 0.03 to 0.05 ms
longer."""

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""What a kernel is for Python."""


START_S = 2.0
"""Most time that a worker may take to start. A thread without memory dies silently."""

RETRY_S = 30.0
"""After one could not be started, no other is tried for so long."""

LOOK_S = 5.0
"""So often is asked how many processors there are to use, which takes 0.1 ms."""


class WorkerThread:
    """A thread that takes part in executions.

    `threading.Thread.start` waits without end for a thread that dies before it runs.

    Parameters
    ----------
    function : callable
        The native code of `WORKER`.
    ticket : int
        Address of its ticket.
    words : memoryview
        The same for Python.
    image : LoadedImage, optional
        Where that code lies: a worker may outlive the program that it was started for.
    """

    def __init__(
        self,
        function: ctypes._CFunctionType,
        ticket: int,
        words: memoryview,
        image: LoadedImage | None = None,
    ) -> None:
        self._function = function
        self._image = image  # for as long as `_run`, which refers to this, has not come to its end
        self._ticket = ticket
        self.words = words
        self.ident: int | None = None
        self.native_id: int | None = None
        self.avoided: int | None = None  # processor that it was placed off last
        # Taken by the thread when it begins, or by the caller that has given it up: never by both.
        self._is_claimed = threading.Lock()
        self._is_up, self._is_over = threading.Lock(), threading.Lock()
        # Both are taken from the start: a lock that is freed once is a signal that is never lost.
        for lock in (self._is_up, self._is_over):
            lock.acquire()
        self._sleep_lock = new_lock()
        weakref.finalize(self, free_lock, self._sleep_lock).atexit = False
        words[_SLEEP_LOCK] = self._sleep_lock
        words[_ACQUIRE] = address_of_interpreters("PyThread_acquire_lock_timed")

    def start(self, timeout_s: float) -> bool:
        """Start the thread, if it comes up in time.

        Raises
        ------
        RuntimeError
            If there are too many threads, or the interpreter is about to end.
        """
        start_new_thread(self._run, ())
        return self._is_up.acquire(timeout=timeout_s)

    def _run(self) -> None:
        """Work until it is stopped."""
        if not self._is_claimed.acquire(blocking=False):
            return  # no thread waits for it any more
        try:
            self.ident, self.native_id = threading.get_ident(), threading.get_native_id()
            self.words[_NATIVE_ID] = self.native_id
            self._is_up.release()
            if not self.words[_STOP]:
                self._function(self._ticket, 0, 0)
        finally:
            self._is_over.release()

    def stop(self) -> None:
        """Ask the worker to end."""
        # The word first: a worker that is waked before it would go to sleep again.
        self.words[_STOP] = 1
        release_lock(self._sleep_lock)

    def join(self) -> None:
        """Wait for its end, if it has begun; it does not begin any more."""
        if not self._is_claimed.acquire(blocking=False):
            self._is_over.acquire()


class Pool:
    """Worker threads, as many as the largest execution so far has asked for, and the arbiter.

    They start when the first execution needs them, and end when nothing is left that `hold`
    was called for. A process that forks goes on without them in the child, and starts new ones.

    Attributes
    ----------
    tickets, arbiter : int
        Addresses, for native code.
    """

    def __init__(self) -> None:
        memory = aligned(TICKET_BYTES * (MOST_THREADS + 1))
        self._memory = memory[-address_of(memory) % TICKET_BYTES :].view(np.int64)
        self._words = self._memory.data
        self.tickets = address_of(self._memory)
        self._arbiter_memory = aligned(core_arbiter.ARBITER_BYTES).view(np.int64)
        self._arbiter = self._arbiter_memory.data
        self.arbiter = address_of(self._arbiter_memory)
        # Programs, not executions: threads that end between two calls would cost each call a start.
        self._num_holders = 0
        self._reset()
        if hasattr(os, "register_at_fork"):
            # No thread survives in the child, and a lock may have been taken by one that did not.
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin without threads."""
        # A finaliser may run while the same thread is inside.
        self._lock = threading.RLock()
        # Who takes it out may start and place workers. Unlike a call that acquires a lock, this
        # cannot be interrupted before the `finally` that puts it back.
        self._turn: list[None] = [None]
        self._workers: list[WorkerThread] = []
        self._memory[:] = 0
        self._arbiter_memory[:] = 0
        self._look_at = self._retry_at = -math.inf
        self._look()

    def _look(self) -> None:
        """See how many processors there are to use: what holds for a process may change."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            num_cores = usable_cores()
            self._arbiter[core_arbiter.LIMIT] = num_cores
            # One that is waked takes a while to come: cores would be idle with a seat for each.
            self._arbiter[core_arbiter.SEATS] = 2 * num_cores + 1

    @property
    def num_workers(self) -> int:
        """Threads that there are."""
        return len(self._workers)

    def hold(self, owner: object) -> None:
        """Let workers exist until an object is gone."""
        with self._lock:
            self._num_holders += 1
        weakref.finalize(owner, self._release)

    def _release(self) -> None:
        """Stop the workers if no user of them is left."""
        if threading.get_ident() in [worker.ident for worker in self._workers]:
            # Garbage is collected wherever it is found, and no thread can wait for itself.
            start_new_thread(self._release, ())
            return
        with self._lock:
            self._num_holders -= 1
            if self._num_holders == 0:
                self._stop()

    def engage(self, num_threads: int, worker: int, image: LoadedImage | None = None) -> int:
        """Get workers ready for one execution, whose native code takes them if they are free.

        Parameters
        ----------
        num_threads
            That the execution may have, the caller's among them, as far as there are processors:
            with more of them than these, threads would stop in the middle of their shares.
        worker
            Address of the code of `WORKER`.
        image : LoadedImage, optional
            Where it lies, as of `WorkerThread`.

        Returns
        -------
        int
            Threads that it wants: its fair share while other executions are under way.
        """
        # Without the lock: a stale number makes an execution a little slower, never wrong.
        self._look()
        words = self._arbiter
        num_threads = min(num_threads, words[core_arbiter.LIMIT])
        num_sharers = words[core_arbiter.ACTIVE] + words[core_arbiter.WAITING] + 1
        if time.perf_counter_ns() - words[core_arbiter.SINCE] < 2 * core_arbiter.WINDOW_NS:
            num_sharers = max(num_sharers, words[core_arbiter.CROWD], words[core_arbiter.PEAK])
        # Native code decides for good; this only saves waking workers that would get nothing to do.
        if num_sharers > 1:
            num_threads = min(num_threads, words[core_arbiter.LIMIT] // num_sharers)
        if num_threads <= 1 or not worker:  # workers need code to run
            return 1
        turn = self._turn
        try:
            del turn[0]
        except IndexError:  # another thread is starting workers; nothing waits for it
            return 1
        try:
            if len(self._workers) < num_threads - 1:
                self._start(num_threads - 1, worker, image)
            self._place(num_threads - 1)
            return 1 + min(num_threads - 1, len(self._workers))
        finally:
            turn.append(None)

    def _place(self, num_workers: int) -> None:
        """Place as many as are needed, of those that no execution has, where they may not be."""
        processor = current_processor()
        for worker in self._workers:
            if num_workers == 0:
                break
            if not worker.words[_OWNER]:
                num_workers -= 1
                # Also one that is awake: the calling thread may have been moved to its processor.
                if worker.words[_ASLEEP] or worker.avoided != processor:
                    place_off(worker, processor)

    def _start(self, num_workers: int, code: int, image: LoadedImage | None) -> None:
        """Start the workers that are missing, or as many as there can be."""
        if time.monotonic() < self._retry_at:
            return
        function = FUNCTION(code)
        for number in range(len(self._workers), num_workers):
            ticket = self.tickets + TICKET_BYTES * number
            line = slice(TICKET_WORDS * number, TICKET_WORDS * (number + 1))
            # A worker that did not come up may have left its stop word here.
            self._memory[line] = 0
            worker = WorkerThread(function, ticket, self._words[line], image)
            # First of all, and wherever the last interrupt has come in between: there must not
            # be a worker that is never stopped.
            self._workers[number:] = [worker]
            try:
                is_up, reason = worker.start(START_S), f"no thread came up in {START_S:g} s"
            except (RuntimeError, MemoryError) as error:
                is_up, reason = False, str(error)
            if not is_up:
                self._retry_at = time.monotonic() + RETRY_S
                # It may come up after all once there is memory: it must find that it has to end.
                self._workers.pop().stop()
                worker.join()
                import logging  # noqa: PLC0415 - seldom needed, and slow to import

                log = logging.getLogger("armpy.NumbaAcc")
                log.warning("executions go on with %d threads: %s", 1 + number, reason)
                break
            place_off(worker, current_processor())
        self._arbiter[core_arbiter.NUM_WORKERS] = len(self._workers)

    def _stop(self) -> None:
        """End all workers."""
        # All are asked before any is waited for, so that they end in parallel.
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join()
        self._workers.clear()
        self._arbiter[core_arbiter.NUM_WORKERS] = 0
        self._retry_at = -math.inf


def place_off(worker: WorkerThread, processor: int | None) -> None:
    """Keep a worker off a processor, that of the thread that it works for.

    Operating systems may put a thread that is waked on the processor of the one that wakes it,
    above all if others are busy as well. Both would only wait for each other.
    """
    if processor is None or worker.native_id is None:
        return
    worker.avoided = processor
    keep_off(worker.native_id, processor)


_pools: dict[None, Pool] = {}


def pool() -> Pool:
    """The process's workers."""
    # Threads that ask first at the same time get the same one: `setdefault` is one step.
    return _pools.get(None) or _pools.setdefault(None, Pool())
