"""Watchdog of memory between executions: what idles is given back."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Protocol

from armpy.execution.memory.arena_pool import arena_pool
from armpy.execution.scheduling.daemons import start_daemon, start_nameless

if TYPE_CHECKING:
    from logging import Logger

    from armpy.types import BackendId

    class IdleHolder(Protocol):
        """A keeper of memory between executions."""

        def release_if_idle(self) -> bool:
            """Give back what was not used since the last call; whether something may be left."""

    class IdlingProgram(IdleHolder, Protocol):
        """A program whose idle memory others of the same backend can have."""

        def uses(self, backend_id: BackendId) -> bool:
            """Whether it gives memory of a backend back when it is told to."""

        def free_idle(self) -> bool:
            """Give idle memory back; whether there was any."""


_LOG = "armpy.execution"

RELEASE_AFTER_S = 10.0
"""How long memory is kept without being used, at least; at most twice as long."""


# Weak: nothing lives longer because it is watched.
_watched: weakref.WeakSet[IdleHolder] = weakref.WeakSet()
_programs: weakref.WeakSet[IdlingProgram] = weakref.WeakSet()
_lock = threading.RLock()  # the garbage collector may end what is watched anywhere
_is_watching = False


def watch_idling(holder: IdleHolder) -> None:
    """Have something asked from time to time whether it idles, as long as it has memory."""
    with _lock:
        _watched.add(holder)
        if not _is_watching:
            _look_later()


def _look_later() -> None:
    """Have a look when it is time for the next one, with the lock held."""
    global _is_watching  # noqa: PLW0603 - one watchdog for the process
    try:
        start_nameless(_sweep)
        _is_watching = True
    except RuntimeError as error:  # memory goes with the models then, or when it is told to
        _logger().debug("nobody looks after what idles, as there can be no thread: %s", error)
        _is_watching = False


def watch_program(program: IdlingProgram) -> None:
    """`watch_idling` for a program, whose idle memory others can have besides; see `reclaim`."""
    with _lock:
        _programs.add(program)
    watch_idling(program)


def reclaim(backend_id: BackendId) -> bool:
    """Give back what no execution is using, as a backend has no more; whether there was any."""
    with _lock:
        programs = [one for one in _programs if one.uses(backend_id)]
    # A list, as `any` would be content with the first; without the lock, as it calls backends.
    return any([one.free_idle() for one in programs])


def _sweep() -> None:
    """Wait, then look after what is watched, on a thread that backends' code may ask for."""
    time.sleep(RELEASE_AFTER_S)
    try:
        start_daemon(_look, "armpy-idling")
    except RuntimeError as error:  # there may be threads again the next time
        _logger().debug("nobody looks after what idles now: %s", error)
        with _lock:
            _look_later()


def _look() -> None:
    """Release what has not been used since the last time, and come again if something is left."""
    global _is_watching  # noqa: PLW0603 - as above
    released: list[IdleHolder] = []
    try:
        with _lock:
            watched = [*_watched]
        for holder in watched:
            # Not under the lock, as backends may take their time to give memory back.
            if not holder.release_if_idle():
                released.append(holder)
        arena_pool.discard_oversized()
    except Exception:  # noqa: BLE001 - as where there is no memory: there may be the next time
        _logger().exception("what idles could not be given back")
    with _lock:
        _watched.difference_update(released)
        _is_watching = False
        if _watched:
            _look_later()


def _reset() -> None:
    """Begin without a watchdog, as a process that was forked does: it has no threads."""
    global _is_watching, _lock  # noqa: PLW0603 - as above
    # What is watched stays, and is looked after again as soon as new memory is made.
    _lock = threading.RLock()
    _is_watching = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


def _logger() -> Logger:
    """The logger; `logging` is imported for the first message, as few starts log."""
    import logging  # noqa: PLC0415

    return logging.getLogger(_LOG)
