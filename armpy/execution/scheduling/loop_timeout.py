"""Limits of one execution, which reach the control flow in it however deep it lies."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager

from armpy.backend.control_flow import execution_timeout
from armpy.core.arguments import check_seconds


class Unset(enum.Enum):
    """The one value that means that nothing was said, where None says something."""

    UNSET = enum.auto()


UNSET = Unset.UNSET


def loop_timeout(timeout_s: float | None) -> AbstractContextManager[None]:
    """Let outermost control flow that begins in this context take so long; None for no limit.

    Raises InvalidArgumentError if it is not a time.
    """
    return execution_timeout(check_loop_timeout(timeout_s))


def check_loop_timeout(timeout_s: float | None) -> float | None:
    """Check a time-out of control flow; errors as of `check_seconds`."""
    failed = "the time-out of loops cannot be used"
    return check_seconds(timeout_s, "loop_timeout_s", failed=failed)
