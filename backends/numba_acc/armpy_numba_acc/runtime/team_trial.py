"""Trial of a short program's threads: whether several are faster than one, by its own calls."""

from __future__ import annotations

import math
from time import perf_counter_ns

_PERIOD, _LENGTH = 128, 4
"""Of so many calls, these first ones run the way that was slower."""

_FIRST = _PERIOD - 16
"""A new program is soon tried."""

_WEIGHT = 1 / 8
"""Of a call in the mean time of its way."""


class TeamTrial:
    """Times of the calls of one program, alone and with other threads."""

    __slots__ = ("_began_ns", "_number", "_times_ns", "is_alone")

    def __init__(self) -> None:
        self.is_alone = False
        self._number = _FIRST
        self._times_ns = [0.0, math.inf]  # with others, which is tried first, and alone
        self._began_ns = 0

    def begin(self) -> bool:
        """Begin a call; return whether it is to run on one thread."""
        number = self._number = (self._number + 1) % _PERIOD
        together, alone = self._times_ns
        self.is_alone = (alone < together) != (number < _LENGTH)
        self._began_ns = perf_counter_ns()
        return self.is_alone

    def end(self) -> None:
        """End a call."""
        passed = perf_counter_ns() - self._began_ns
        # The first one of its way finds other caches, and threads that sleep.
        if self._number not in (0, _LENGTH, _FIRST + 1):
            mean = self._times_ns[self.is_alone]
            if not 0 < mean < math.inf:
                mean = passed
            # A call that was interrupted for long says little.
            self._times_ns[self.is_alone] = mean + _WEIGHT * (min(passed, 4 * mean) - mean)
