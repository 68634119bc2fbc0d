"""Locks between processes: one makes an entry, the others wait and find it.

All waits for file locks are in this module. Each ends when the holder releases the lock, dies, is
stopped (SIGSTOP), or takes too long; in the latter two cases the waiter does the work itself.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LONGEST_WAIT_S = 60.0
"""Longest wait for a lock. A longer holder is suspended, or makes something huge."""

# Most holders write a small file; one that compiles takes seconds, and is asked less often.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1

_MOST_REFUSALS = 100
"""Times in a row that Windows refuses to open a lock's file, which another process may remove."""

_LONGEST_ID = 20
"""Bytes of a process id."""

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""System errors for a file that is locked elsewhere."""

_log = logging.getLogger("armpy.store")

_held_handles: set[int] = set()
_given_up: set[tuple[int, int, int]] = set()
"""Holdings that were waited for until the limit, and are not waited for again; see `_holding`."""


def _release_in_child() -> None:
    """Close the locks of the parent, or a forked child would hold them longer than the parent."""
    for handle in _held_handles:
        os.close(handle)
    _held_handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


@contextlib.contextmanager
def locked(
    # A file in an existing folder, which holds the process id of the holder; made, and removed
    # again.
    path: Path,
    # By `time.perf_counter`; the lock is not waited for any longer, nor than `LONGEST_WAIT_S`.
    deadline_s: float | None = None,
) -> Iterator[bool]:
    """Run a block while no other process, nor another thread, runs one with the same file.

    The system takes a lock from a process that dies. A lock is not a recursive one. A forked child
    does not hold the locks of its parent.

    Yields
    ------
    bool
        Whether it is held. The block runs in any case: where files cannot be written, or the
        holder takes too long, work is done twice instead of not at all.
    """
    handle = _acquired(path, math.inf if deadline_s is None else deadline_s)
    owner = os.getpid()
    try:
        yield handle is not None
    finally:
        if handle is not None and os.getpid() == owner:
            _held_handles.discard(handle)
            _remove(path, handle)


def _acquired(path: Path, deadline_s: float) -> int | None:
    """A descriptor of the locked file; None if it cannot be had."""
    limit_s = time.perf_counter() + LONGEST_WAIT_S
    pause_s = _FIRST_PAUSE_S
    refusals = 0
    while True:
        try:
            handle = _opened(path)
            refusals = 0
        except OSError as error:
            refusals += 1
            if _may_pass(error) and refusals < _MOST_REFUSALS:
                time.sleep(_FIRST_PAUSE_S)
                continue
            _log.info("%s cannot be locked: %s", path, error)
            return None
        try:
            _try_lock(handle)
        except OSError as error:
            now_s = time.perf_counter()
            if now_s >= limit_s:
                _given_up.add(_holding(handle))
            reason = _why_stuck(handle)
            os.close(handle)
            if error.errno not in _HELD:  # the file system has no locks
                _log.info("%s cannot be locked: %s", path, error)
                return None
        else:
            # Between opening and locking, the holder may have taken the file away: a lock of
            # that one excludes no other process, as the next one makes a new file.
            if _is_current(handle, path):
                _note_holder(handle)
                return handle
            os.close(handle)  # the holder has taken it away
            continue
        if now_s >= deadline_s:
            _log.info("%s is not waited for any longer", path)
            return None
        if reason:
            _log.warning("%s is not waited for: %s; this process does the work", path, reason)
            return None
        time.sleep(max(0.0, min(pause_s, min(limit_s, deadline_s) - now_s)))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _opened(path: Path) -> int:
    """Open the file of a lock, which is made if it is missing; raises OSError for a link."""
    no_link = getattr(os, "O_NOFOLLOW", 0)
    if not no_link and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link", os.fspath(path))
    # Not for programs that are started: they would hold the lock as long as they run.
    flags = os.O_RDWR | os.O_CREAT | no_link | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, 0o600)


def _may_pass(error: OSError) -> bool:
    """Return whether a file cannot be opened for a moment only, as another process removes it."""
    return sys.platform == "win32" and isinstance(error, PermissionError)


def _remove(path: Path, handle: int) -> None:
    """Remove a file that is locked here, and release it."""
    if sys.platform == "win32":
        # An open file cannot be removed there, so that none is removed that another has locked.
        os.close(handle)
        with contextlib.suppress(OSError):
            path.unlink()
    else:
        with contextlib.suppress(OSError):  # first: no one may lock a file that is gone
            path.unlink()
        os.close(handle)


def _try_lock(handle: int) -> None:
    """Lock a file; raises OSError if it is locked elsewhere."""
    if sys.platform == "win32":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        # `flock` and not `lockf`, whose locks count per process and would not keep out threads.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _note_holder(handle: int) -> None:
    """Write the id of this process to a file that it has locked, for `_why_stuck`."""
    _held_handles.add(handle)
    if hasattr(os, "pwrite"):
        with contextlib.suppress(OSError):  # a full disk: others wait for the limit then
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)


def _holding(handle: int) -> tuple[int, int, int]:
    """Identity of a locked file and of the time at which its holder locked it."""
    status = os.fstat(handle)
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _why_stuck(handle: int) -> str:
    """Why the holder of a lock will not release it soon; empty if that is not known.

    Processes of other containers are not seen from here: a suspended one is waited for once, until
    the limit. If another process here has its id and is stopped, the work is done twice.
    """
    if _holding(handle) in _given_up:
        return f"its holder needs more than {LONGEST_WAIT_S:g} s"
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            holder = int(os.pread(handle, _LONGEST_ID, 0))
            state = Path(f"/proc/{holder}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "T":
                return f"process {holder}, its holder, is stopped"
    return ""


def _is_current(handle: int, path: Path) -> bool:
    """Return whether an open file is the one that others would open now."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
