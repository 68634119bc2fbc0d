"""Events: what executions that were started come to, and fences that others can wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import as_integer, require_data
from armpy_nnapi.run.fence_watch import fence_watch
from armpy_nnapi.run.fences import Fence, wait_for_fence

WhenDone = Callable[[BaseException | None], None]
"""Receives an event's result: None, or its error."""


class Event:
    """The end of something that goes on.

    Parameters
    ----------
    has_fence : bool
        Whether others can wait for it with a descriptor.

    Notes
    -----
    What executions that were started return; `create_from_sync_fence_fd` makes one of a fence of
    other programs or devices.
    """

    def __init__(self, *, has_fence: bool = False) -> None:
        self._has_fence = has_fence
        self._is_foreign = False
        self._fence: Fence | None = None
        self._is_done = threading.Event()
        self._failed: BaseException | None = None
        self._callbacks: list[WhenDone] = []
        # Held while the end is set or a callback is added, so that no callback falls between the
        # two: it is either in the list at the end, or called by the thread that adds it.
        self._lock = threading.Lock()

    @classmethod
    def create_from_sync_fence_fd(cls, fd: int) -> Event:
        """Make an event of a fence that another component signals.

        Parameters
        ----------
        fd : int
            A descriptor that can be read once the fence is signalled: an eventfd, a sync fence,
            one end of a pipe or socket. It is the caller's still, who may close it afterwards.

        Raises
        ------
        NnapiError
            BAD_DATA if it is 0 or below, or not open.
        """
        where = "Event.create_from_sync_fence_fd"
        fd = as_integer(fd, "descriptor", where)
        require_data(
            fd > 0,
            "the fence has no descriptor",
            where=where,
            expected="a descriptor above 0",
            actual=str(fd),
        )
        event = cls(has_fence=True)
        event._fence = Fence.duplicate(fd, where)
        # This process does not settle it: each query reads the descriptor.
        event._is_foreign = True
        return event

    @property
    def is_done(self) -> bool:
        """Return whether it has come to its end."""
        if self._is_foreign:
            self._look(0.0)
        return self._is_done.is_set()

    @property
    def has_fence(self) -> bool:
        """Return whether others can wait for it with a descriptor."""
        return self._has_fence

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end.

        Parameters
        ----------
        timeout_s : float, optional
            Time limit; none if left out.

        Raises
        ------
        NnapiError
            The execution's error; MISSED_DEADLINE_TRANSIENT if it goes on after
            `timeout_s`, which does not stop it.
        """
        if self._is_foreign:
            self._look(timeout_s)
        if timeout_s is not None:
            # The standard library refuses longer times than these 292 years.
            timeout_s = min(timeout_s, threading.TIMEOUT_MAX)
        if not self._is_done.wait(0.0 if self._is_foreign else timeout_s):
            raise NnapiError(
                "the execution still goes on",
                code=ResultCode.MISSED_DEADLINE_TRANSIENT,
                where="Event.wait",
                expected=f"its end within {timeout_s} s",
            )
        if self._failed is not None:
            raise self._failed

    def get_sync_fence_fd(self) -> int:
        """A descriptor that can be read as soon as it has come to its end.

        Returns
        -------
        int
            A new one at each call, which the caller closes. It is not to be read from, only to be
            waited for (poll, select, asyncio); it is signalled also if the execution fails.

        Raises
        ------
        NnapiError
            BAD_DATA, with -1 as the error's `value`, if the event has no fence, or the system
            has no such descriptors.
        """
        where = "Event.get_sync_fence_fd"
        reason = "there is no fence"
        try:
            with self._lock:
                if self._has_fence and self._fence is None:
                    # Made on first use: most callers that start with fences wait for the event
                    # itself, and descriptors are few.
                    self._fence = Fence.create()
                    if self._fence is not None and self._is_done.is_set():
                        self._fence.signal(is_failed=self._failed is not None)
                if self._fence is not None:
                    # A copy, as the caller closes it while the event may still have to signal its
                    # own.
                    return Fence.duplicate(self._fence.fd, where).detach()
        except (OSError, NnapiError) as error:
            reason = str(error)
        raise NnapiError(
            reason,
            code=ResultCode.BAD_DATA,
            value=-1,
            where=where,
            expected="an event of start_compute_with_dependencies, on a system with eventfd",
        )

    def settle(self, failed: BaseException | None) -> None:
        """Set the end, and the error if it failed; only the first call counts."""
        with self._lock:
            if self._is_done.is_set():
                return
            self._failed = failed
            callbacks, self._callbacks = self._callbacks, []
            # First, as threads that waited for the end may read the descriptor at once.
            if self._fence is not None and not self._is_foreign:
                self._fence.signal(is_failed=failed is not None)
            self._is_done.set()
        # Without the lock: a callback may start an execution, which asks this event again.
        for callback in callbacks:
            callback(failed)

    def when_done(self, callback: WhenDone) -> None:
        """Call a function at the end, or now if it has ended."""
        if not self.is_done:  # of a foreign fence this looks
            with self._lock:
                if not self._is_done.is_set():
                    self._callbacks.append(callback)
                    if self._is_foreign and len(self._callbacks) == 1 and self._fence is not None:
                        # One watch is enough for all callbacks, as they are called together.
                        fence_watch.begin(self._fence.fd, lambda: self._look(0.0))
                    return
        callback(self._failed)

    def _look(self, timeout_s: float | None) -> None:
        """Wait for a foreign fence, and settle if it is signalled."""
        if self._fence is None or self._is_done.is_set():
            return
        is_good = wait_for_fence(self._fence.fd, timeout_s)
        if is_good is not None:
            text = "the fence was signalled with an error"
            error = NnapiError(text, code=ResultCode.OP_FAILED, where="Event")
            self.settle(None if is_good else error)


def when_all_are_done(events: Sequence[Event], begin: WhenDone) -> None:
    """Call `begin` once, when all events have ended, with the error of the first that failed.

    Notes
    -----
    Events without fences are waited for here, as NNAPI does.
    """
    for event in events:
        if not event.has_fence:
            # An event without a fence is never of a foreign one, so its own flag marks the end.
            event._is_done.wait()
    lock = threading.Lock()
    failures: list[BaseException] = []
    # One more than there are events, which `count(None)` below takes away: with events that have
    # ended already it would come to 0 before all are registered, and `begin` be called twice.
    num_left = len(events) + 1

    def count(failed: BaseException | None) -> None:
        nonlocal num_left
        with lock:
            if failed is not None:
                failures.append(failed)
            num_left -= 1
            is_last = num_left == 0
        if is_last:
            begin(failures[0] if failures else None)

    for event in events:
        event.when_done(count)
    count(None)
