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
            """Release memory not used since the last call; return whether some may be left."""

    class IdlingProgram(IdleHolder, Protocol):
        """A program whose idle memory others of the same backend can have."""

        def uses(self, backend_id: BackendId) -> bool:
            """Return whether it gives memory of a backend back when asked."""

        def free_idle(self) -> bool:
            """Give idle memory back; whether there was any."""


_LOG = "armpy.execution"

RELEASE_AFTER_S = 10.0
"""How long memory is kept without being used, at least; at most twice as long."""


class Watchdog:
    """Release of memory that has not been used between two looks, as long as there is any."""

    def __init__(
        self,
        release_after_s: float = RELEASE_AFTER_S,  # time between two looks
    ) -> None:
        self.release_after_s = release_after_s
        # Weak: nothing lives longer because it is watched.
        self._watched: weakref.WeakSet[IdleHolder] = weakref.WeakSet()
        self._programs: weakref.WeakSet[IdlingProgram] = weakref.WeakSet()
        self._lock = threading.RLock()  # the garbage collector may end watched objects anywhere
        self._is_watching = False

    def watch(self, holder: IdleHolder) -> None:
        """Look at a holder from time to time, as long as it has memory."""
        with self._lock:
            self._watched.add(holder)
            if not self._is_watching:
                self._look_later()

    def watch_program(self, program: IdlingProgram) -> None:
        """`watch` a program, whose idle memory others can have besides; see `reclaim`."""
        with self._lock:
            self._programs.add(program)
        self.watch(program)

    def reclaim(self, backend_id: BackendId) -> bool:
        """Release what no execution uses, where a backend has no memory left; whether it did."""
        with self._lock:
            programs = [program for program in self._programs if program.uses(backend_id)]
        # A list, as `any` would stop at the first; without the lock, as it calls backends.
        return any([program.free_idle() for program in programs])

    def look(self) -> None:
        """Release memory that has not been used since the last look."""
        with self._lock:
            watched = [*self._watched]
        # Not under the lock, as backends may take their time to give memory back.
        released = [holder for holder in watched if not holder.release_if_idle()]
        arena_pool.discard_oversized()
        with self._lock:
            self._watched.difference_update(released)

    def restart_in_child(self) -> None:
        """Begin without a thread, as a process that was forked does."""
        # Watched memory stays, and is looked at again as soon as new memory is made.
        self._lock = threading.RLock()
        self._is_watching = False

    def _look_later(self) -> None:
        """Have a look when it is time for the next one, with the lock held."""
        try:
            start_nameless(self._wait)
            self._is_watching = True
        except RuntimeError as error:  # memory goes with the models then, or on request
            _logger().debug("idle memory is not released, as no thread can be started: %s", error)
            self._is_watching = False

    def _wait(self) -> None:
        """Wait, then look at the watched objects, on a thread that backends' code may ask for."""
        time.sleep(self.release_after_s)
        try:
            start_daemon(self._look_and_continue, "armpy-idling")
        except RuntimeError as error:  # there may be threads again the next time
            _logger().debug("idle memory is not released now: %s", error)
            with self._lock:
                self._look_later()

    def _look_and_continue(self) -> None:
        """Look, and again later if something is left."""
        try:
            self.look()
        except Exception:  # noqa: BLE001 - as where there is no memory: there may be the next time
            _logger().exception("idle memory could not be released")
        with self._lock:
            self._is_watching = False
            if self._watched:
                self._look_later()


watchdog = Watchdog()
"""The process's watchdog."""

if hasattr(os, "register_at_fork"):
    # Looked up in the child: a test may have put another one in its place.
    os.register_at_fork(after_in_child=lambda: watchdog.restart_in_child())  # noqa: PLW0108


def _logger() -> Logger:
    """The logger; `logging` is imported for the first message, as few starts log."""
    import logging  # noqa: PLC0415

    return logging.getLogger(_LOG)
