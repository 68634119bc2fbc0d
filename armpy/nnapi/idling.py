"""Watchdog of reusable executions: what idles gives its prepared memory back."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from armpy.runtime.deadlines import Watch, deadlines

if TYPE_CHECKING:
    from armpy.nnapi.execution import Execution

RELEASE_AFTER_S = 10.0
"""How long a reusable execution keeps what it has prepared without being used, at least."""

_watched: weakref.WeakSet[Execution] = weakref.WeakSet()
_lock = threading.Lock()
_is_watching = False


def watch_idling(execution: Execution) -> None:
    """Release what an execution has prepared when it has not been used for a while."""
    global _is_watching  # noqa: PLW0603 - one watchdog for the process
    with _lock:
        _watched.add(execution)
        if not _is_watching:
            _is_watching = True
            deadlines.begin(Watch(time.perf_counter() + RELEASE_AFTER_S, _sweep))


def _sweep() -> None:
    """Release what has not been used since the last time, and come again if something is left."""
    global _is_watching  # noqa: PLW0603 - as above
    with _lock:
        watched = [*_watched]
    released = [execution for execution in watched if not execution.release_if_idle()]
    with _lock:
        _watched.difference_update(released)
        _is_watching = bool(_watched)
        if _is_watching:
            deadlines.begin(Watch(time.perf_counter() + RELEASE_AFTER_S, _sweep))


def _reset() -> None:
    """Begin without a watchdog, as a process that was forked does: it has no threads."""
    global _is_watching, _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()
    _is_watching = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
