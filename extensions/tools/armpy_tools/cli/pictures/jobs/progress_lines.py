"""Lines about progress, for logs: a terminal has a bar."""

from __future__ import annotations

import time
from typing import TextIO

from armpy.core.turns import Clock

_LEAST_S = 10.0
_LEAST_SHARE = 0.01
_MOST_S = 300.0


class ProgressLines:
    """Writes now and then how far a job has come.

    Parameters
    ----------
    stream : file or None
    done, total : int
        Pictures that another process has done, and all.
    clock : callable

    Notes
    -----
    Ten seconds and a hundredth of the job lie between two lines at least, unless five minutes have
    passed: a log of a job of any length stays short. Rate and time left are those of the pictures
    after the first ones: these wait until the model is loaded and compiled.
    """

    def __init__(
        self, stream: TextIO | None, done: int, total: int, clock: Clock = time.monotonic
    ) -> None:
        self._stream = None if stream is None or stream.isatty() else stream
        self._shown = done
        self._total = total
        self._clock = clock
        self._shown_at = clock()
        self._first: tuple[int, float] | None = None  # pictures done at first, and when

    def show(self, done: int) -> None:
        """Write a line, if it is time for one."""
        now = self._clock()
        if self._first is None:
            self._first = (done, now)
        since = now - self._shown_at
        is_time = since >= _LEAST_S and done - self._shown >= _LEAST_SHARE * self._total
        if self._stream is None or done >= self._total or not (is_time or since >= _MOST_S):
            return
        self._shown, self._shown_at = done, now
        text = f"{done:,} of {self._total:,} pictures ({done / self._total:.0%})"
        first, began_at = self._first
        if done > first:
            rate = (done - first) / (now - began_at)
            text += f", {rate:.1f} pictures/s, {_duration((self._total - done) / rate)} left"
        print(f"armpy: {text}", file=self._stream, flush=True)


def _duration(seconds: float) -> str:
    """A time in the two units that matter."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
