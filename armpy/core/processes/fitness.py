"""Fitness of a worker to go on serving after a failure in it, found out by trying."""

from __future__ import annotations

import _thread
import os
from contextlib import ExitStack

from armpy.core.resident_memory import reserve_memory
from armpy.errors import ArmpyError

NO_MEMORY = "it had no memory left"
_NO_DESCRIPTORS = "it has no file descriptors left"
_NO_THREADS = "it can start no threads"

_NEEDED_PIPES = 2
"""A place for executions takes four descriptors: two that are sent, and their stored copies."""
_NEEDED_BYTES = 1 << 20
LONGEST_START_S = 5.0


class UnfitError(Exception):
    """A worker cannot serve any more because a resource is used up; the text names it."""


def check_descriptors(are_whole: bool) -> None:
    """Check that no descriptor of a request was lost for want of a number for it."""
    if not are_whole:
        raise UnfitError(_NO_DESCRIPTORS)


def why_unfit(error: BaseException) -> str:
    """Why this process cannot serve any more, in which an error was raised; empty if it can.

    What an error says of its reason is not asked, as code in between has put it in words of its
    own; except of memory, which may be back by now. A few microseconds and a thread.
    """
    if isinstance(error, UnfitError):
        return str(error)
    if _is_out_of_memory(error):
        return NO_MEMORY
    try:
        return _descriptors() or _memory() or _threads()
    except MemoryError:
        return NO_MEMORY


def _descriptors() -> str:
    with ExitStack() as opened:
        try:
            for _ in range(_NEEDED_PIPES):
                for end in os.pipe():
                    opened.callback(os.close, end)
        except OSError:
            return _NO_DESCRIPTORS
    return ""


def _memory() -> str:
    try:
        # From the system: Python may have a reserve, which is soon used up.
        reserve_memory(_NEEDED_BYTES)
    except OSError:
        return NO_MEMORY
    return ""


def _threads() -> str:
    # `Thread.start` waits for ever for a thread that has no memory to begin with.
    is_there = _thread.allocate_lock()
    is_there.acquire()
    try:
        _thread.start_new_thread(is_there.release, ())
    except RuntimeError:
        return _NO_THREADS
    return "" if is_there.acquire(timeout=LONGEST_START_S) else NO_MEMORY


def _is_out_of_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) and not isinstance(error, ArmpyError):
            return True
        # A backend's error may be caused by a failed allocation.
        error = error.__cause__
    return False


def hold_standard_streams() -> list[int]:
    """Reserve descriptors 0, 1 and 2 for standard streams, which the application may have closed.

    What native code prints would go to whatever file had the number else, such as a connection.

    Returns the descriptors that it has opened.
    """
    opened: list[int] = []
    while not all(map(_is_open, range(3))):
        try:
            opened.append(os.open(os.devnull, os.O_RDWR))  # which takes the lowest number
        except OSError:
            break
    return opened


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
