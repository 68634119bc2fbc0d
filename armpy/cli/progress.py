"""Shows on a terminal how far a command is with what takes long."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from armpy.core.units import printable

if TYPE_CHECKING:
    from armpy.backend import Progress


class ProgressLine:
    """The current step in a line of standard error, if that is a terminal.

    The next step takes its place, and nothing is left of it in the end.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = sys.stderr if stream is None else stream
        self._stream = stream if stream is not None and stream.isatty() else None
        self._length = 0
        self._lock = threading.Lock()  # backends report from threads of their own

    @property
    def is_shown(self) -> bool:
        """Return whether there is a terminal to show it on."""
        return self._stream is not None

    def show(self, step: str) -> None:
        """Show a step; an empty one removes the line."""
        if self._stream is None:
            return
        with self._lock:
            text = printable(step)[: shutil.get_terminal_size().columns - 1]
            self._stream.write(f"\r{text.ljust(self._length)}\r{text}")
            self._stream.flush()
            self._length = len(text)


@contextmanager
def progress_shown(stream: TextIO | None = None) -> Iterator[None]:
    """Show the progress of backends while a block runs."""
    line = ProgressLine(stream)
    if not line.is_shown:
        yield
        return
    # Few have a terminal.
    from armpy.backend import watch_progress  # noqa: PLC0415

    def show(progress: Progress) -> None:
        is_done = progress.done >= progress.total
        text = f"{progress.backend_id}: {progress.task} {progress.done}/{progress.total}"
        line.show("" if is_done else text)

    try:
        with watch_progress(show):
            yield
    finally:
        line.show("")
