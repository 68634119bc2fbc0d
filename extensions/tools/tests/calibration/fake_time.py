"""A clock that tests move."""

from __future__ import annotations

from armpy_tools.calibrate import Clock


class FakeTime:
    """Time that passes, and that is computed, only when someone says so."""

    def __init__(self) -> None:
        self.now_s = self.computed_s = 0.0
        self.clock = Clock(lambda: self.now_s, lambda: self.computed_s)

    def work(self, seconds: float, processors: float = 1.0) -> None:
        self.now_s += seconds
        self.computed_s += seconds * processors
