"""The device's queue: commands one after the other, on a thread that stands for the device."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from armpy.backend import Cancellation, ICompletion, Measurement, trace_section, vlog
from armpy.errors import ArmpyError, BackendError, ExecutionCancelledError
from armpy.ops.operation import Array
from armpy_example_device.faults import Faults

_IDLE_S = 0.5
"""How long the thread stays without a command."""

_POLL_S = 0.002
"""Interval at which a waiting thread checks whether to go on."""

_TICK_S = 0.001
"""How long a device that hangs or is slow sleeps between two looks at its cancellation."""


@dataclass(frozen=True, eq=False, slots=True)
class Command:
    """Something for the device to do."""

    name: str
    run: Callable[[], Iterator[None]]
    """Makes the tiles, as an iterator: the device looks between two of them whether to stop."""
    output: Array  # its output
    cancellation: Cancellation | None = None  # that of the execution that it belongs to
    report: Callable[[Measurement], None] | None = None  # receives its duration
    keep_alive: object = None  # has to live as long as the command


class Completion(ICompletion):
    """The end of a command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._is_cancelled = False
        self._has_begun = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._error: ArmpyError | None = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, which a cancellation of the command's execution brings about."""
        has_ended = self._wait(timeout_s)
        if has_ended and self._error is not None:
            raise self._error
        return has_ended

    def _wait(self, timeout_s: float | None) -> bool:
        """Wait, and look meanwhile whether to cancel what stands after others in the queue."""
        cancellation = self.command.cancellation
        if cancellation is None:
            return self._ended.wait(timeout_s)
        until = None if timeout_s is None else time.perf_counter() + timeout_s
        while not self._ended.wait(_POLL_S):
            if cancellation.is_cancelled:
                self.cancel()
            if until is not None and time.perf_counter() >= until:
                return False
        return True

    def cancel(self) -> None:
        """Stop the command between two tiles, or at once if it has not begun."""
        with self._lock:
            self._is_cancelled = True
            if not self._has_begun and not self._ended.is_set():
                self.end(self._cancelled())

    def begin(self) -> bool:
        """Whether the command is to be run."""
        with self._lock:
            self._has_begun = True
            return not self._ended.is_set()

    def _cancelled(self) -> ArmpyError:
        """What a cancelled command raises."""
        cancellation = self.command.cancellation
        if cancellation is not None and cancellation.is_cancelled:
            return cancellation.error
        return ExecutionCancelledError("the command was cancelled", where="ExampleDevice")

    def check(self) -> None:
        """Raise if the command is to stop."""
        cancellation = self.command.cancellation
        if self._is_cancelled or (cancellation is not None and cancellation.is_cancelled):
            raise self._cancelled()

    def end(self, error: ArmpyError | None) -> None:
        """Wake every waiting thread."""
        self._error = error
        self._ended.set()


class Queue:
    """Runs commands in the order in which they come.

    Notes
    -----
    The thread starts with the first command and ends after a while without any, so that a device
    which is never closed leaves no thread.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._changed = threading.Condition()
        self._waiting: deque[Completion] = deque()
        self._running: Completion | None = None
        self._has_thread = False

    def submit(self, command: Command) -> Completion:
        """Add a command."""
        completion = Completion(command)
        vlog("driver", "ExampleDevice: %s is queued", command.name)
        with self._changed:
            self._waiting.append(completion)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._work, name="ExampleDevice", daemon=True).start()
            self._changed.notify()
        return completion

    def close(self) -> None:
        """Cancel every command."""
        with self._changed:
            for completion in (self._running, *self._waiting):
                if completion is not None:
                    completion.cancel()

    def _work(self) -> None:
        """Run commands until there has been none for a while."""
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting, _IDLE_S):
                    self._has_thread = False
                    return
                completion = self._running = self._waiting.popleft()
            if completion.begin():
                completion.end(self._run(completion))
            with self._changed:
                self._running = None
            del completion  # and the memory that it uses, while the thread waits

    def _run(self, completion: Completion) -> ArmpyError | None:
        """Run one command; errors are returned for the thread that waits for it."""
        command = completion.command
        started = time.perf_counter()
        try:
            self._go_wrong_before(completion)
            completion.check()
            # Infinities and NaNs are answers like any other.
            with trace_section("ExampleDevice", command.name), np.errstate(all="ignore"):
                for _ in command.run():
                    completion.check()
            if self._faults.take("wrong") and command.output.size:
                command.output.reshape(-1).view(np.uint8)[0] ^= 0x40
            if command.report is not None:
                duration = time.perf_counter() - started
                thread = threading.get_ident()
                command.report(Measurement(command.name, started * 1e6, duration * 1e6, thread))
        except ArmpyError as error:
            return error
        except Exception as error:  # noqa: BLE001 - as a driver: the waiting thread gets it
            return _failure(command, error)
        return None

    def _go_wrong_before(self, completion: Completion) -> None:
        """Carry out the faults that come before the work."""
        if self._faults.take("fail"):
            raise BackendError("the device reports a failure", where="ExampleDevice")
        hangs, is_slow = self._faults.take("hang"), self._faults.take("slow")
        until = time.perf_counter() + (0.2 if is_slow else 0.0)
        while hangs or time.perf_counter() < until:
            completion.check()
            time.sleep(_TICK_S)


def _failure(command: Command, cause: Exception) -> ArmpyError:
    """The error for a kernel that raised something else."""
    error = BackendError(f"the kernel raised {cause!r}", where=f"ExampleDevice / {command.name}")
    error.__cause__ = cause
    return error
