"""Watch on fences: one thread of the process waits for all of them."""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress

from armpy.errors import QueueFullError
from armpy.execution.scheduling.daemons import start_daemon

_log = logging.getLogger("armpy_nnapi")

_IDLE_S = 5.0
"""Time that the thread waits for another fence before it ends."""

WhenReady = Callable[[], object]
"""Called by the thread when a fence is signalled; quick."""


class FenceWatch:
    """Waits for fences on a thread of its own.

    Notes
    -----
    The thread is there only while there is something to watch, and a little longer. A process that
    forks goes on without it in the child.
    """

    def __init__(self) -> None:
        self._wake_fds: tuple[int, int] | None = None
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Forget all fences and the thread, as at the start and in a child after a fork."""
        self._lock = threading.Lock()
        self._watched: dict[int, WhenReady] = {}
        self._close_wake()

    def _close_wake(self) -> None:
        """Forget the pipe that the thread is woken by."""
        fds, self._wake_fds = self._wake_fds, None
        for fd in fds or ():
            os.close(fd)

    def begin(self, fd: int, when_ready: WhenReady) -> None:
        """Call something, once, when a descriptor can be read; it stays open until then.

        Raises
        ------
        QueueFullError
            If the process can have no thread that waits for it.
        """
        with self._lock:
            self._watched[fd] = when_ready
            if self._wake_fds is None:
                self._wake_fds = os.pipe()
                for end in self._wake_fds:
                    # Neither the thread nor the one that wakes it may hang in the pipe.
                    os.set_blocking(end, False)
                # A daemon: fences that are never signalled do not keep the process from ending.
                try:
                    start_daemon(self._wait, "armpy-fences")
                except RuntimeError as error:  # the next one tries again
                    del self._watched[fd]
                    self._close_wake()
                    raise QueueFullError(
                        f"no thread can wait for the fence: {error}",
                        fix="Let the process have more threads (ulimit -u), or memory for them",
                    ) from error
            else:
                with suppress(BlockingIOError):  # so full that the thread is awake
                    os.write(self._wake_fds[1], b"x")

    def _wait(self) -> None:
        """Wait for descriptors and call their waiters, on the thread."""
        while True:
            with self._lock:
                if self._wake_fds is None:  # of another process by now
                    return
                wake_fd = self._wake_fds[0]
                fds = [*self._watched]
            poll = select.poll()
            for fd in (wake_fd, *fds):
                poll.register(fd, select.POLLIN)
            ready = [fd for fd, _ in poll.poll(None if fds else _IDLE_S * 1000)]
            with self._lock:
                if wake_fd in ready:
                    # Several may have written since; one look at the memory serves them all.
                    os.read(wake_fd, 4096)
                called = [self._watched.pop(fd) for fd in ready if fd in self._watched]
                if not ready and not self._watched:
                    self._close_wake()
                    return
            for when_ready in called:
                try:
                    when_ready()
                except Exception:  # noqa: BLE001 - of one is nothing to the others
                    _log.exception("what waited for a fence has failed")


fence_watch = FenceWatch()
"""The watch of this process."""
