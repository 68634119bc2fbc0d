"""Time limits of executions."""

from __future__ import annotations

import logging
import time
from numbers import Real

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.execution import deadline_in
from armpy.execution.scheduling.loop_timeout import UNSET, Unset
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import bad_data

_log = logging.getLogger("armpy_nnapi")

DEFAULT_LOOP_TIMEOUT_NS = 2_000_000_000
"""Default time limit of a WHILE."""

MAXIMUM_LOOP_TIMEOUT_NS = 15_000_000_000
"""The longest time that a WHILE may be given."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits of an execution and of each loop in it."""

    timeout_ns: int = 0  # from its start on; 0 for no limit
    loop_timeout_ns: int | None = None  # by default as the runtime's options say

    @property
    def loop_timeout_s(self) -> float | Unset:
        """Time limit of each loop."""
        return UNSET if self.loop_timeout_ns is None else self.loop_timeout_ns / 1e9

    def deadline_s(self) -> float | None:
        """The time by `time.perf_counter` at which an execution that starts now has to end."""
        return deadline_in(self.timeout_ns / 1e9) if self.timeout_ns else None


NO_LIMITS = TimeLimits()
"""The limits of an execution without any; one object, as most are such."""


def clamped_loop_timeout(duration_ns: object, where: str) -> int:
    """A loop's time-out, `MAXIMUM_LOOP_TIMEOUT_NS` at most; BAD_DATA if it is not a time."""
    limit_ns = check_duration(duration_ns, where)
    # NNAPI clamps times that are too long, and does not refuse them.
    if limit_ns > MAXIMUM_LOOP_TIMEOUT_NS:
        _log.warning("%s: %d ns is more than the maximum, which is used", where, limit_ns)
    return min(limit_ns, MAXIMUM_LOOP_TIMEOUT_NS)


def check_duration(duration_ns: object, where: str) -> int:
    """A duration in nanoseconds.

    Raises
    ------
    NnapiError
        BAD_DATA if it is none.
    """
    # Infinity is allowed and means no limit; NaN compares as false and is refused.
    is_number = isinstance(duration_ns, Real) and not isinstance(duration_ns, (bool, np.bool_))
    if not is_number or not duration_ns >= 0:  # type: ignore[operator]  # not true of NaN
        raise bad_data(
            "the time is below 0, or no number",
            where=where,
            expected="nanoseconds, 0 or more",
            actual=repr(duration_ns),
        )
    return duration_ns  # type: ignore[return-value]  # a number


def left_s(deadline_s: float | None, where: str) -> float | None:
    """Seconds until a deadline; None if there is none.

    Raises
    ------
    NnapiError
        MISSED_DEADLINE_PERSISTENT if it has passed.
    """
    if deadline_s is None:
        return None
    left_s = deadline_s - time.perf_counter()
    if left_s <= 0:
        raise too_late(where)
    return left_s


def too_late(where: str) -> NnapiError:
    """The error for what could not begin in time."""
    return NnapiError(
        "the deadline passed before the execution could begin",
        code=ResultCode.MISSED_DEADLINE_PERSISTENT,
        where=where,
    )
