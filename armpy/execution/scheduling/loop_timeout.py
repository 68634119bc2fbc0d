"""Limits of one execution, which reach the control flow in it however deep it lies."""

from __future__ import annotations

import enum
import math
from contextlib import AbstractContextManager

from armpy.backend.control_flow import execution_timeout
from armpy.errors import InvalidArgumentError


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
    """Check a time-out of control flow.

    Raises InvalidArgumentError if it is neither None nor a number of 0 or more.
    """
    is_number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
    if timeout_s is not None and (not is_number or math.isnan(timeout_s) or timeout_s < 0):
        raise InvalidArgumentError(
            "the time-out of loops cannot be used",
            where="loop_timeout_s",
            expected="seconds, 0 or more, or None for no limit",
            actual=repr(timeout_s),
        )
    return timeout_s
