"""Limits of one execution, which reach the loops in it however deep they lie."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from armpy.errors import InvalidArgumentError

DEFAULT_LOOP_TIMEOUT_S = 2.0
"""How long a loop may take unless the caller says more; NNAPI's default."""


class Unset(enum.Enum):
    """The one value that means that nothing was said, where None says something."""

    UNSET = enum.auto()


UNSET = Unset.UNSET

_loop_timeout: ContextVar[tuple[float | None] | None] = ContextVar("loop_timeout", default=None)


@contextmanager
def loop_timeout(timeout_s: float | None) -> Iterator[None]:
    """Let every loop that begins in this context take so long; None for no limit.

    Raises
    ------
    InvalidArgumentError
        If it is not a time.
    """
    token = _loop_timeout.set((check_loop_timeout(timeout_s),))
    try:
        yield
    finally:
        _loop_timeout.reset(token)


def current_loop_timeout(default_s: float | None) -> float | None:
    """How long a loop that begins now may take."""
    chosen = _loop_timeout.get()
    return default_s if chosen is None else chosen[0]


def check_loop_timeout(timeout_s: float | None) -> float | None:
    """Check a time-out of loops.

    Raises
    ------
    InvalidArgumentError
        If it is neither None nor a number of 0 or more.
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
