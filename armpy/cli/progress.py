"""Shows on a terminal how far backends are with what takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from armpy.backend import Progress


@contextmanager
def progress_shown(stream: TextIO | None = None) -> Iterator[None]:
    """Show progress while a block runs, if there is a terminal to show it on.

    Parameters
    ----------
    stream : file, optional
        Standard error if left out.
    """
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty():
        yield
        return
    # Few have a terminal.
    from armpy.backend import watch_progress  # noqa: PLC0415

    display = _Display(stream)
    try:
        with watch_progress(display.show):
            yield
    finally:
        display.close()


class _Display:
    """A bar per task, there as long as the task runs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bars: Bars | None = None
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._lock = threading.Lock()  # backends report from threads of their own

    def show(self, progress: Progress) -> None:
        """Draw the bar of a task anew."""
        with self._lock:
            if self._bars is None:
                # Rich takes long to import, and most of what runs has no progress to show.
                from armpy.cli.progress_bars import started_bars  # noqa: PLC0415

                self._bars = started_bars(self._stream)
            key = progress.backend_id, progress.task
            if key not in self._tasks:
                self._tasks[key] = self._bars.add_task(": ".join(key), total=progress.total)
            number = self._tasks[key]
            self._bars.update(number, completed=progress.done, total=progress.total, refresh=True)
            if progress.done >= progress.total:
                self._bars.remove_task(self._tasks.pop(key))
        if not self._tasks:
            self.close()

    def close(self) -> None:
        """Take all bars away."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
            self._bars = None
            self._tasks.clear()
