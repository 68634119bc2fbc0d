"""Places of a network's executions: no more of them run at the same time than its quota allows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from armpy.backend import Cancellation, current_cancellation
from armpy.execution.scheduling.stop_signal import acquire
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.ops.operation import Array
from armpy.profiling import WatchedLock


class ExecutionPlaces:
    """Places for a number of executions, taken like a lock.

    Parameters
    ----------
    number : int
        1 or more.
    """

    def __init__(self, number: int) -> None:
        self._free = threading.Semaphore(number)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take a place; whether that was possible."""
        return self._free.acquire(blocking, None if timeout < 0 else timeout)

    def release(self) -> None:
        """Give the place back."""
        self._free.release()


def in_places(runs: Runs, places: ExecutionPlaces, *, is_profiled: bool) -> Runs:
    """Let each execution wait for a place, unless it is stopped before.

    Parameters
    ----------
    runs : Runs
    places : ExecutionPlaces
        Shared by all executions of the network.
    is_profiled : bool
        Whether waits are recorded in the profile.
    """
    run, bind = runs
    lock = WatchedLock(places, "a place of the network") if is_profiled else places

    def run_in_place(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        acquire(lock, cancellation)
        try:
            return run(sources, results, cancellation)
        finally:
            lock.release()

    if bind is None:
        return Runs(run_in_place)

    def bind_in_place(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        execute = bind(sources, results)

        def execute_in_place() -> Sequence[Array] | None:
            acquire(lock, current_cancellation())
            try:
                return execute()
            finally:
                lock.release()

        return execute_in_place

    return Runs(run_in_place, bind_in_place)
