"""Stopping of work that may take long for one element."""

from __future__ import annotations

from collections.abc import Callable

from armpy.backend import current_cancellation


def stop_check() -> Callable[[], None]:
    """Give what raises an error if the execution is to stop; it is called often."""
    cancellation = current_cancellation()
    return (lambda: None) if cancellation is None else cancellation.check
