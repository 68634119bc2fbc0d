"""Watchdogs of idle memory in the place of the process's, so that no test meets another's looks."""

from __future__ import annotations

import pytest

from armpy.execution.memory import idle_release
from armpy.execution.memory.idle_release import Watchdog


class StillWatchdog(Watchdog):
    """A watchdog that looks when a test calls `look`, and not by itself."""

    def _look_later(self) -> None:
        """Start no thread."""


def use_watchdog(monkeypatch: pytest.MonkeyPatch, watchdog: Watchdog) -> None:
    """Have a watchdog of the test's watch the memory that is made from now on."""
    monkeypatch.setattr(idle_release, "watchdog", watchdog)
