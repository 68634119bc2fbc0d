"""Item: what one caller has handed in, until it has the answer."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import TypeAlias, TypeVar

from armpy.errors import ExecutionTimeoutError
from armpy.execution.scheduling.deadlines import Watch, deadlines
from armpy.ops.operation import Array

_log = logging.getLogger("armpy_serving.batching")

Answer: TypeAlias = dict[str, Array]

T = TypeVar("T")


class AnswerSlot:
    """Future for a caller that waits at once: what every item of `Batcher.run` pays for is less."""

    __slots__ = ("_claim", "_is_over", "_outcome")

    def __init__(self) -> None:
        self._outcome: tuple[Answer | None, BaseException | None] = (None, None)
        # The thread that takes it out gives the result; a list's `pop` needs no lock.
        self._claim = [None]
        self._is_over = threading.Lock()
        self._is_over.acquire()

    def result(self) -> Answer:
        """Wait for the answer; what went wrong is raised."""
        with self._is_over:
            answer, error = self._outcome
        if answer is None:
            assert error is not None
            raise error
        return answer

    def done(self) -> bool:
        """Return whether there is an outcome."""
        return not self._claim

    def cancel(self) -> bool:
        """Cancel unless there is an outcome; returns whether it was cancelled."""
        return self._settle(None, CancelledError())

    def set_running_or_notify_cancel(self) -> bool:
        """Return whether there is something to do."""
        return bool(self._claim)

    def set_result(self, answer: Answer) -> None:
        """Set the answer as the outcome."""
        if not self._settle(answer, None):
            raise InvalidStateError

    def set_exception(self, error: BaseException) -> None:
        """Set an error as the outcome."""
        if not self._settle(None, error):
            raise InvalidStateError

    def _settle(self, answer: Answer | None, error: BaseException | None) -> bool:
        """Set the outcome once; returns whether this was the first time."""
        try:
            self._claim.pop()
        except IndexError:
            return False
        self._outcome = answer, error
        self._is_over.release()
        return True


class Item:
    """One caller's inputs and answer.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        One row of each input, without the batch dimension.
    keeps_axis : bool
        Whether the caller's arrays have a batch dimension of 1, as the answer's will.
    deadline_s : float, optional
        Deadline by `time.perf_counter`.
    future : Future or AnswerSlot
        Future of the outputs by name.

    Attributes
    ----------
    key : tuple
        Shapes: only items of the same shapes can be run together.
    arrived_s : float
        Time by the clock of `time.perf_counter`.
    is_waiting : bool
        Whether it is in line; `WaitingItems` says so.
    """

    __slots__ = (
        "_watch",
        "arrays",
        "arrived_s",
        "deadline_s",
        "future",
        "is_waiting",
        "keeps_axis",
        "key",
    )

    def __init__(
        self,
        arrays: Mapping[str, Array],
        keeps_axis: bool,
        deadline_s: float | None,
        future: Future[Answer] | AnswerSlot,
    ) -> None:
        self.arrays = arrays
        self.keeps_axis = keeps_axis
        self.deadline_s = deadline_s
        # A list first: a generator takes longer, and this is done for every item.
        self.key = tuple([array.shape for array in arrays.values()])
        self.future = future
        self.arrived_s = time.perf_counter()
        self.is_waiting = False
        self._watch: Watch | None = None

    def own_arrays(self) -> None:
        """Copy arrays that the caller may change while it waits."""
        self.arrays = {name: array.copy() for name, array in self.arrays.items()}

    def watch(self, stop: Watch) -> None:
        """Let something happen at the deadline, unless there is an answer before."""
        self._watch = stop
        deadlines.begin(stop)

    @property
    def remaining_s(self) -> float | None:
        """Return how long is left until the deadline; None if there is none."""
        return None if self.deadline_s is None else self.deadline_s - time.perf_counter()

    def answer(self, outputs: Answer) -> None:
        """Give the caller the answer, unless the item already has an outcome."""
        self._end()
        _settle(self.future.set_result, outputs)

    def fail(self, error: BaseException) -> None:
        """Give the caller the error, unless the item already has an outcome."""
        self._end()
        _settle(self.future.set_exception, _own(error))

    def expire(self) -> None:
        """Fail the item because its deadline has passed."""
        self.fail(too_late())

    def _end(self) -> None:
        """Let nothing happen at the deadline any more."""
        if self._watch is not None:
            deadlines.end(self._watch)


def _settle(setter: Callable[[T], object], outcome: T) -> None:
    """Set a future's outcome; errors of its callbacks do not affect other items."""
    try:
        setter(outcome)
    except InvalidStateError:
        return  # it came too late
    except BaseException:  # noqa: BLE001 - even SystemExit, which would end a worker
        _log.exception("a callback of an item's future has failed")


def too_late() -> ExecutionTimeoutError:
    """The error for a deadline that has passed."""
    return ExecutionTimeoutError("the item's deadline has passed", where="Batcher")


def _own(error: BaseException) -> BaseException:
    """An error for one caller: raised in several threads, one would gather all their frames."""
    try:
        own = copy.copy(error)
    except Exception:  # noqa: BLE001 - a backend's own, which may not be copied
        return error
    own.__cause__ = error.__cause__ or error
    return own
