"""Tuning: requests to measure which choices are fastest here, and their results."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import mark_choices
from armpy.errors import InvalidArgumentError
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class TunedChoice:
    """One thing that a backend has several ways to do."""

    layer: str  # layers that it is about
    what: str  # the decision, for people
    # The way that is taken without a measurement, and the fastest one; `measured` is empty if there
    # was no time to try.
    modelled: str
    measured: str = ""
    # How long they take.
    modelled_us: float = 0.0
    measured_us: float = 0.0


@dataclass(frozen=True, slots=True)
class TuningResult:
    """Result of tuning one part of a network."""

    backend_id: BackendId
    what: str  # which part, for people
    # Time of the whole part without and with the result.
    before_us: float = 0.0
    after_us: float = 0.0
    choices: Sequence[TunedChoice] = ()
    problem: str = ""
    """Why nothing was measured or kept; else empty."""


class TuningRequest:
    """An application's request that backends measure, and their answers.

    Parameters
    ----------
    seconds : float
        Time that all backends together may measure; compilations come on top.

    Raises
    ------
    InvalidArgumentError
        If the time is not a number.
    """

    def __init__(self, seconds: float) -> None:
        if math.isnan(seconds):
            raise InvalidArgumentError(
                "the time to measure is not a number", expected="seconds", actual=str(seconds)
            )
        self.results: list[TuningResult] = []
        self._seconds = seconds
        self._end_s: float | None = None

    @property
    def remaining_s(self) -> float:
        """Seconds that may be measured still; 0 if the time is over.

        The time begins when a backend first asks: to parse and compile the network comes on top.
        """
        if self._end_s is None:
            # It begins with the first question, or parsing would use up the time to measure.
            self._end_s = time.monotonic() + self._seconds
        return max(self._end_s - time.monotonic(), 0.0)

    def extend(self, seconds: float) -> None:
        """Give back time that was not spent on measuring."""
        if self._end_s is None:
            self._seconds += seconds
        else:
            self._end_s += seconds

    def add(self, result: TuningResult) -> None:
        """Report a result."""
        self.results.append(result)


# In the context, so that the core knows nothing of tuning between the application and a backend.
_REQUEST: ContextVar[TuningRequest | None] = ContextVar("armpy tuning request", default=None)


@contextmanager
def request_tuning(seconds: float) -> Iterator[TuningRequest]:
    """Ask backends to measure their choices for the networks that a block loads.

    Parameters
    ----------
    seconds : float
        Time that all backends together may measure.

    Notes
    -----
    It holds for the thread that asks; in a free-threaded Python, also for threads that it starts
    in the block. A backend stores the results where it stores what it compiles, so that later loads
    use it without being asked; one that has nothing to measure does nothing.

    Examples
    --------
    >>> with request_tuning(60) as request:
    ...     pass  # armpy.load("model.tflite")
    >>> request.results
    []
    """
    request = TuningRequest(seconds)
    token = _REQUEST.set(request)
    try:
        yield request
    finally:
        _REQUEST.reset(token)
        # After an exception as well: some choices may have been kept by then.
        mark_choices()


def requested_tuning() -> TuningRequest | None:
    """Return the measurements requested while a subgraph is optimised, or None."""
    return _REQUEST.get()
