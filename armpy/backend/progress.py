"""Progress of long tasks, reported by backends and heard by applications."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.types import BackendId

_log = logging.getLogger("armpy.backend")
_LOCK = threading.Lock()

_SILENT_S = 2.0
"""Time after which a task that nobody watches is announced."""

_ADVICE = (
    "What 'armpy cache' lists is kept, so that later starts do not wait; "
    'armpy.load(..., compile="background") answers meanwhile'
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a task of a backend."""

    backend_id: BackendId
    task: str  # for people, such as ``compiling kernels``
    # Steps; a task is first reported with 0 done and ends with all.
    done: int
    total: int


ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Function that receives progress; called in the thread that makes it."""

# Of the process, not of a context: networks are prepared on any thread.
_WATCHERS: list[ProgressCallback] = []

_UNWATCHED: dict[tuple[int, BackendId, str], float] = {}
"""Start time of each task that has not been announced, by thread, backend and task."""


@contextmanager
def watch_progress(callback: ProgressCallback) -> Iterator[None]:
    """Watch long tasks, such as compiling, while a block runs.

    Parameters
    ----------
    callback : callable
        Takes a `Progress`. It is called for every network that any thread prepares
        meanwhile. Its errors are logged, and stop nothing.

    Examples
    --------
    >>> with watch_progress(lambda step: print(step.task, step.done, "of", step.total)):
    ...     report_progress(Progress("SomeBackend", "compiling kernels", 1, 12))
    compiling kernels 1 of 12
    """
    # Several threads may begin and end watching at a time.
    with _LOCK:
        _WATCHERS.append(callback)
    try:
        yield
    finally:
        with _LOCK:
            _WATCHERS.remove(callback)


def report_progress(progress: Progress) -> None:
    """Notify all watchers; for backends during work that takes seconds.

    A task of more than two seconds that nobody watches is announced by one line: on standard error
    if that is a terminal, else in the log.
    """
    # A copy without the lock: a callback may end watching, and must not wait for itself.
    watchers = tuple(_WATCHERS)
    for callback in watchers:
        try:
            callback(progress)
        except Exception:  # noqa: BLE001  # an application's failure must not become the backend's
            _log.exception("a callback for progress failed")
    if not watchers:
        _announce(progress)


def _announce(progress: Progress) -> None:
    """Say that a task which nobody watches takes long, once."""
    key = threading.get_ident(), progress.backend_id, progress.task
    if progress.done == 0:
        _UNWATCHED[key] = time.monotonic()
    is_over = progress.done >= progress.total
    begun = _UNWATCHED.get(key)
    if begun is None or not (is_over or time.monotonic() - begun >= _SILENT_S):
        return
    del _UNWATCHED[key]
    if is_over:
        return
    text = f"{progress.backend_id} is {progress.task}, {progress.done} of {progress.total} so far. "
    text += _ADVICE
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"armpy: {text}", file=sys.stderr, flush=True)
    else:
        _log.info("%s", text)
