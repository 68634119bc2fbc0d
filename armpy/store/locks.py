"""Locks between processes: who makes something that the others then find."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LONGEST_WAIT_S = 300.0
"""How long a lock is waited for. Who holds it longer has got stuck, or makes something huge."""

# Most holders write a small file; one that compiles takes seconds, and is asked less often.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What the system says of a file that somebody else has locked."""

_log = logging.getLogger("armpy.store")


@contextlib.contextmanager
def locked(path: Path, deadline_s: float | None = None) -> Iterator[bool]:
    """Run a block while no other process, nor another thread, runs one with the same file.

    Parameters
    ----------
    path : Path
        A file of no contents, in a folder that is there; made, and taken away again.
    deadline_s : float, optional
        By `time.perf_counter`; the lock is not waited for any longer.

    Yields
    ------
    bool
        Whether it is held. The block runs in any case: where files cannot be written, or the
        holder takes too long, work is done twice instead of not at all.

    Notes
    -----
    The system takes a lock from a process that dies. A lock is no recursive one.
    """
    limit_s = time.perf_counter() + LONGEST_WAIT_S
    handle = _acquired(path, limit_s if deadline_s is None else min(limit_s, deadline_s))
    try:
        yield handle is not None
    finally:
        if handle is not None:
            with contextlib.suppress(OSError):  # first: nobody may lock what has gone
                path.unlink()
            os.close(handle)


def _acquired(path: Path, limit_s: float) -> int | None:
    """A descriptor of the locked file; None if it cannot be had."""
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            # Not for programs that are started: they would hold the lock as long as they run.
            handle = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            _log.info("%s cannot be locked: %s", path, error)
            return None
        try:
            _try_lock(handle)
        except OSError as error:
            os.close(handle)
            if error.errno not in _HELD:  # the file system has no locks
                _log.info("%s cannot be locked: %s", path, error)
                return None
        else:
            # Between opening and locking, the holder may have taken the file away: a lock of
            # that one keeps out nobody, as whoever comes next makes a new file.
            if _is_current(handle, path):
                return handle
            os.close(handle)  # whoever held it has taken it away
            continue
        if time.perf_counter() >= limit_s:
            _log.info("%s is not waited for any longer", path)
            return None
        time.sleep(max(0.0, min(pause_s, limit_s - time.perf_counter())))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _try_lock(handle: int) -> None:
    """Lock a file; raises OSError if somebody else has."""
    if sys.platform == "win32":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        # `flock` and not `lockf`, whose locks count per process and would not keep out threads.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_current(handle: int, path: Path) -> bool:
    """Whether an open file is the one that others would open now."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
