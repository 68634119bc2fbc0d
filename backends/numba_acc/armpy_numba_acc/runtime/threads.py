"""The workers that all networks of a process share.

Notes
-----
Workers are Python's threads that stay in native code, without the interpreter's lock, as long
as there is something to do and a little longer; then they sleep. They belong to one execution
at a time. Another one that comes meanwhile runs on the thread that it was called from.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import threading
import weakref
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from armpy_numba_acc.machine.alignment import address_of, aligned
from armpy_numba_acc.machine.execution import ASLEEP, BUSY, LINE_BYTES, STOP
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.objects import kernel_addresses

_log = logging.getLogger("armpy.NumbaAcc")

MOST_THREADS = 256
"""That one execution can have."""

LINE_WORDS = LINE_BYTES // 8
"""Integers of a ticket's cache line."""

_ASLEEP, _BUSY, _STOP = ASLEEP // 8, BUSY // 8, STOP // 8

WORKER = Kernel("worker", (1 << 13,))
"""Looks some hundred microseconds for more to do."""

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""What a kernel is for Python."""


class Pool:
    """Worker threads, as many as the largest execution so far has asked for.

    Notes
    -----
    They start when the first execution needs them, and end when nothing is left that `hold`
    was called for. A process that forks goes on without them in the child, and starts new ones.
    """

    def __init__(self) -> None:
        self._memory = aligned(8 * LINE_WORDS * MOST_THREADS).view(np.int64)
        self._words = self._memory.data
        self.tickets = address_of(self._memory)
        self._num_holders = 0
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin without threads."""
        # A finaliser may run while the same thread is inside.
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._wakes: list[threading.Lock] = []
        self._memory[:] = 0

    @property
    def num_workers(self) -> int:
        """Threads that there are."""
        return len(self._threads)

    def hold(self, owner: object) -> None:
        """Let workers exist until an object is gone."""
        with self._lock:
            self._num_holders += 1
        weakref.finalize(owner, self._release)

    def _release(self) -> None:
        """Stop the workers if nobody is left to need them."""
        if threading.current_thread() in self._threads:
            # Garbage is collected wherever it is found, and no thread can wait for itself.
            threading.Thread(target=self._release, name="NumbaAcc-stop").start()
            return
        with self._lock:
            self._num_holders -= 1
            if self._num_holders == 0:
                self._stop()

    def engage(self, num_threads: int, isa: Isa) -> int:
        """Get workers ready for one execution, whose native code takes them if they are free.

        Returns
        -------
        int
            Threads to run on, the caller's among them. 1 if the workers are busy.
        """
        if self._words[_BUSY]:
            return 1
        with self._lock:
            if len(self._threads) < num_threads - 1:
                self._start(num_threads - 1, isa)
            num_workers = min(num_threads - 1, len(self._threads))
            for worker in range(num_workers):
                # One that goes to sleep just now misses the execution, and no more.
                if self._words[LINE_WORDS * worker + _ASLEEP]:
                    place_elsewhere(self._threads[worker])
                    _release_if_held(self._wakes[worker])
        return 1 + num_workers

    def _start(self, num_workers: int, isa: Isa) -> None:
        """Start the workers that are missing, or as many as there can be."""
        function = FUNCTION(kernel_addresses([WORKER], isa)[WORKER])
        for number in range(len(self._threads), num_workers):
            wake = threading.Lock()
            wake.acquire()
            ticket = self.tickets + 8 * LINE_WORDS * number
            self._memory[LINE_WORDS * number : LINE_WORDS * (number + 1)] = 0
            work = partial(_work, function, ticket, self._words[LINE_WORDS * number :], wake)
            # A daemon, because the interpreter waits for others before it stops them.
            thread = threading.Thread(target=work, name=f"NumbaAcc-{number + 1}", daemon=True)
            # First of all, and wherever the last interrupt has come in between: there must not
            # be a worker that nobody stops.
            self._wakes[number:] = [wake]
            self._threads[number:] = [thread]
            try:
                thread.start()
            except RuntimeError as error:  # too many, or the interpreter is about to end
                self._threads.pop()
                self._wakes.pop()
                _log.warning("executions go on with %d threads: %s", 1 + number, error)
                return
            place_elsewhere(thread)

    def _stop(self) -> None:
        """End all workers."""
        for number, wake in enumerate(self._wakes):
            self._words[LINE_WORDS * number + _STOP] = 1
            _release_if_held(wake)
        for thread in self._threads:
            if thread.ident is not None:  # an interrupt may have come before it started
                thread.join()
        self._threads.clear()
        self._wakes.clear()


def _release_if_held(wake: threading.Lock) -> None:
    """Wake a worker; it is free already if the worker was waked and has not looked yet."""
    if wake.locked():
        wake.release()


def place_elsewhere(thread: threading.Thread) -> None:
    """Keep a thread off the processor that the calling thread runs on.

    Notes
    -----
    Operating systems may put a thread that is waked on the processor of the one that wakes it,
    above all if others are busy as well. Both would only wait for each other.
    """
    current_processor = _current_processor()
    if current_processor is None or thread.native_id is None:
        return
    others = os.sched_getaffinity(0) - {current_processor()}
    if others:
        with contextlib.suppress(OSError):  # then it stays where it is
            os.sched_setaffinity(thread.native_id, others)


@cache
def _current_processor() -> Callable[[], int] | None:
    """What tells the processor that a thread runs on; None if threads cannot be placed here."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    function: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return function


def _work(
    function: ctypes._CFunctionType, ticket: int, words: memoryview, wake: threading.Lock
) -> None:
    """What a worker does until it is stopped."""
    while not words[_STOP]:
        function(ticket, 0, 0)
        if not words[_STOP]:
            wake.acquire()
            words[_ASLEEP] = 0


@cache
def pool() -> Pool:
    """The process's workers."""
    return Pool()
