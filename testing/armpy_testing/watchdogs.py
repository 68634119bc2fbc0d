"""Watchdogs of idle memory in the place of the process's, so that no test meets another's looks."""

from __future__ import annotations

import pytest

from armpy.execution.memory import idle_release
from armpy.execution.memory.idle_release import RELEASE_AFTER_S, Watchdog


class StillWatchdog(Watchdog):
    """A watchdog that looks when a test calls `look`, and not by itself."""

    def _look_later(self) -> None:
        """Start no thread."""


def use_watchdog(
    monkeypatch: pytest.MonkeyPatch, *, release_after_s: float = RELEASE_AFTER_S
) -> Watchdog:
    """Have a watchdog of the test's watch the memory that is made from now on; return it."""
    watchdog = Watchdog(release_after_s)
    monkeypatch.setattr(idle_release, "watchdog", watchdog)
    return watchdog


def use_still_watchdog(monkeypatch: pytest.MonkeyPatch) -> StillWatchdog:
    """`use_watchdog` with one that looks only when the test calls its `look`."""
    watchdog = StillWatchdog()
    monkeypatch.setattr(idle_release, "watchdog", watchdog)
    return watchdog
