"""Signal handlers that raise, or execute themselves, wherever an application starts executions."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import pytest

from armpy.errors import BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.effort import effort
from armpy_testing.models.networks import chain

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers"),
    pytest.mark.timeout(method="thread"),  # the other way is the timer that these tests set
]

raising = pytest.mark.skipif(
    sys.version_info[:2] == (3, 14),
    reason="a handler that raises can leave a lock taken (github.com/python/cpython/issues/148874)",
)

X = np.ones(4, np.float32)
LONGEST_S = 400e-6


class AlarmError(Exception):
    """What the application's handler raises."""


class Alarms:
    """Signals at random times, each of which does something once."""

    def __init__(self, what: Callable[[], None]) -> None:
        self._what = what
        self._random = random.Random(1)
        self._is_armed = False

    def __call__(self, number: int, frame: object) -> None:
        if self._is_armed:
            self._is_armed = False
            self._what()

    def arm(self) -> None:
        """Send one soon."""
        self._is_armed = True
        signal.setitimer(signal.ITIMER_REAL, self._random.uniform(1e-6, LONGEST_S))

    def disarm(self) -> None:
        """Let none do anything any more."""
        self._is_armed = False


@pytest.fixture
def on_alarm() -> Iterator[Callable[[Callable[[], None]], Alarms]]:
    """Makes alarms, for the time of a test."""
    before = signal.getsignal(signal.SIGALRM)
    unraisable_hook = sys.unraisablehook

    def unraisable(unraisable_args: UnraisableHookArgs) -> None:
        """Python drops what a handler raises while a weak reference or the collector calls back."""
        if unraisable_args.exc_type is not AlarmError:
            unraisable_hook(unraisable_args)

    def begin(action: Callable[[], None]) -> Alarms:
        alarms = Alarms(action)
        signal.signal(signal.SIGALRM, alarms)
        sys.unraisablehook = unraisable
        return alarms

    yield begin
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    sys.unraisablehook = unraisable_hook


def models() -> list[Model]:
    """Two networks of a runtime with two threads, all of whose modules are imported.

    A handler that raises while Python imports one leaves Python's own file open.
    """
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"], execution_threads=2))
    started = [Model(chain(1), runtime), Model(chain(2), runtime)]
    for model in started:
        model.start({"x": X}).result(30)
        model.bind({"x": X}).start().result(30)
    return started


def raise_alarm() -> None:
    raise AlarmError


@raising
@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("deadline_s", [None, 60.0])
def test_handlers_that_raise_leave_the_runtime_able_to_execute(
    on_alarm: Callable[[Callable[[], None]], Alarms], deadline_s: float | None
) -> None:
    alarms, models_started = on_alarm(raise_alarm), models()
    num_alarms, end = 0, time.monotonic() + effort(1)
    while time.monotonic() < end:
        started: list[tuple[int, Future[dict[str, Array]]]] = []
        for number, model in enumerate(models_started * 3):
            try:
                alarms.arm()
                future = model.start({"x": X}, deadline_s=deadline_s)
                alarms.disarm()
                started.append((number % 2 + 1, future))
            except AlarmError:  # and nothing else
                num_alarms += 1
        for added, waiting in started:
            np.testing.assert_array_equal(waiting.result(30)["y"], X + added)
    assert num_alarms > 10


@raising
@pytest.mark.parametrize("deadline_s", [None, 60.0])
def test_bound_execution_can_be_called_again_after_a_handler_has_raised(
    on_alarm: Callable[[Callable[[], None]], Alarms], deadline_s: float | None
) -> None:
    alarms, (model, _) = on_alarm(raise_alarm), models()
    execution = model.bind({"x": X}, deadline_s=deadline_s)
    raised: list[BaseException] = []
    for _ in range(effort(500)):
        try:
            alarms.arm()
            execution()
            alarms.disarm()
        except (AlarmError, BackendError, RuntimeError) as error:
            # Within a workload it is taken for the backend's own, within the standard library's
            # Condition it becomes an error of the lock.
            raised.append(error.__context__ or error)
            deadline = time.monotonic() + 10
            while not execution._turn:  # a task that was stopped gives its turn back at its end
                assert time.monotonic() < deadline
    np.testing.assert_array_equal(execution()["y"], X + 1)
    assert {type(error) for error in raised} == {AlarmError}


@pytest.mark.slow
def test_handlers_may_start_executions_themselves(
    on_alarm: Callable[[Callable[[], None]], Alarms],
) -> None:
    started = models()
    inner: deque[Future[dict[str, Array]]] = deque()
    alarms = on_alarm(lambda: inner.append(started[1].start({"x": X}, deadline_s=60)))
    for _ in range(effort(300)):
        alarms.arm()
        outer = started[0].start({"x": X}, deadline_s=60)
        np.testing.assert_array_equal(outer.result(30)["y"], X + 1)
        alarms.disarm()
        while inner:
            np.testing.assert_array_equal(inner.popleft().result(30)["y"], X + 2)
