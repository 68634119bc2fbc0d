"""Fences: descriptors that can be waited for, and are signalled once."""

from __future__ import annotations

import errno
import os
import re
import select
import weakref

from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import bad_data

_GOOD = 1
"""Count of an eventfd whose execution ended well."""

_FAILED = 1 << 32
"""Count of a fence whose execution failed; repeated signals do not reach it."""

_MOST_S = 2.0e6
"""The longest time that poll takes, 23 days; longer ones are without limit."""

_COUNT = re.compile(r"^eventfd-count:\s*([0-9a-f]+)$", re.MULTILINE)


class Fence:
    """A descriptor of this process that is closed with this object.

    Parameters
    ----------
    fd : int
        Taken over.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._finalizer = weakref.finalize(self, os.close, fd)

    @classmethod
    def create(cls) -> Fence | None:
        """Make a fence that is not signalled; None where the system has no eventfd."""
        if not hasattr(os, "eventfd"):
            return None
        # Not inherited by programs that are started, and a write never blocks the thread that
        # signals.
        return cls(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    @classmethod
    def duplicate(cls, fd: int, where: str) -> Fence:
        """Make a fence of a copy of a foreign descriptor.

        Raises
        ------
        NnapiError
            BAD_DATA if it is not open; RESOURCE_EXHAUSTED_TRANSIENT if there is no other.
        """
        try:
            return cls(os.dup(fd))
        except OSError as error:
            if error.errno == errno.EBADF:
                raise bad_data(f"descriptor {fd} is not open: {error}", where=where) from error
            code = ResultCode.RESOURCE_EXHAUSTED_TRANSIENT
            raise NnapiError(f"there is no descriptor: {error}", code=code, where=where) from error

    def signal(self, *, is_failed: bool) -> None:
        """Signal it."""
        os.eventfd_write(self.fd, _FAILED if is_failed else _GOOD)

    def detach(self) -> int:
        """The descriptor, which the caller closes."""
        # Otherwise the descriptor would be closed under the caller when this object goes.
        self._finalizer.detach()
        return self.fd


def wait_for_fence(fd: int, timeout_s: float | None) -> bool | None:
    """Wait until a fence is signalled.

    Parameters
    ----------
    timeout_s : float, optional
        Time limit; none if left out.

    Returns
    -------
    bool or None
        Whether it was signalled without an error; None if it was not signalled in time.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    # Negative times, which have passed, would be without limit; so are those of many days.
    is_limited = timeout_s is not None and timeout_s < _MOST_S
    ready = poll.poll(max(timeout_s or 0.0, 0.0) * 1000 if is_limited else None)
    if not ready:
        return None
    _, events = ready[0]
    # A descriptor that was closed meanwhile, or a pipe whose other end went without a signal.
    if events & (select.POLLERR | select.POLLNVAL) or not events & select.POLLIN:
        return False
    return _eventfd_count(fd) < _FAILED


def _eventfd_count(fd: int) -> int:
    """The count of an eventfd, not by reading it, which would reset it; 0 of others."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            match = _COUNT.search(file.read())
    except OSError:  # no /proc: errors of other processes' fences are unknown
        return 0
    return int(match[1], 16) if match else 0
