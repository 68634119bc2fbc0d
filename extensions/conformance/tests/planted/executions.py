"""Faults of threads, queues, bound executions, arrays, cancellations, and repetition."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armpy.backend import (
    Cancellation,
    Capabilities,
    Capability,
    HostTensorHandle,
    ICompletion,
    IWorkload,
    cancellable,
    current_cancellation,
)
from armpy.errors import BackendError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.ops import ElementwiseUnary
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .device import OwnMemory, with_workloads
from .planting import Planted
from .shapes import Call, Fault, Flow, Fused, Plain, Wrapped, spoil, spoil_tensor, wrapping

# --- Threads


class OneScratch(Fault):
    """One place for intermediate results of a workload."""

    def __init__(self) -> None:
        self._kept: dict[object, Array] = {}

    def key(self, key: object, array: Array) -> object:
        """What results share their place."""
        return key, array.shape, array.dtype

    def scratch(self, key: object, array: Array) -> Array:
        scratch = self._kept.setdefault(self.key(key, array), np.empty_like(array))
        scratch[...] = array
        time.sleep(0)
        return scratch


class OneScratchForAll(OneScratch):
    """One place for intermediate results of a shape, for all computations."""

    def key(self, key: object, array: Array) -> object:
        index = key[1] if isinstance(key, tuple) else key
        return index, array.shape, array.dtype


@dataclass
class ScratchOf(OneScratch):
    """One place for intermediate results of one operation, which all threads share."""

    name: str
    _kept: dict[object, Array] = field(default_factory=dict)
    _result: dict[object, Array] = field(default_factory=dict)

    def scratch(self, key: object, array: Array) -> Array:
        return array.copy()

    def after(self, call: Call) -> None:
        if call.operation.name == self.name:
            for number, output in enumerate(call.outputs):
                place = (number, output.shape, output.dtype)
                scratch = self._result.setdefault(place, np.empty_like(output))
                scratch[...] = output
                time.sleep(0)
                output[...] = scratch


class OneThread(Wrapped):
    """Executions belong to the thread that prepared the layer."""

    def __init__(self, right: IWorkload) -> None:
        super().__init__(right)
        self._owner = threading.get_ident()

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if threading.get_ident() != self._owner:
            raise RuntimeError("no current context in this thread")
        super().execute(inputs, outputs)


# --- Once in a while


class DirtyAfterError(Wrapped):
    """After an execution that failed the next one is wrong."""

    _is_dirty = False

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        was_dirty, self._is_dirty = self._is_dirty, False
        try:
            super().execute(inputs, outputs)
        except Exception:
            self._is_dirty = True
            raise
        if was_dirty:
            spoil_tensor(outputs[0])


class Sleepy(Fault):
    """The result after a rest is wrong."""

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._last_s: dict[int, float] = {}

    def after(self, call: Call) -> None:
        now, key = time.monotonic(), id(call.operation)
        last = self._last_s.get(key, now)
        self._last_s[key] = now
        if now - last > self._rest_s:
            spoil(call.outputs[0])


@dataclass
class After(Fault):
    """Executions are wrong that a condition on their number chooses."""

    is_wrong: Callable[[int], bool]

    def wrap(self, step: Step) -> IWorkload:
        count = 0

        def execute(inputs: Handles, outputs: Outputs) -> None:
            nonlocal count
            count += 1
            step.right.execute(inputs, outputs)
            if self.is_wrong(count):
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class AlignedStores(Fault):
    """Outputs are written as if they began at a multiple of 64 bytes."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        for handle in outputs:
            is_aligned = handle.map(write=False).ctypes.data % 64 == 0
            handle.unmap()
            if not is_aligned:
                spoil_tensor(handle)


@dataclass
class Once(Fault):
    """Something happens in one of many executions."""

    period: int
    action: Callable[[Call], object]
    _count: int = 0

    def after(self, call: Call) -> None:
        self._count += 1
        if self._count % self.period == 0:
            self.action(call)


# --- Bound executions and arrays


class BoundEarly(Wrapped):
    """Bound executions give the results of the first one."""

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        bound = self._right.bind(inputs, outputs)
        first: list[Array] = []

        def run() -> None:
            if first:
                for handle, array in zip(outputs, first, strict=True):
                    handle.copy_in_from(array)
                return
            bound()
            for handle in outputs:
                first.append(np.array(handle.map(write=False)))
                handle.unmap()

        return run


class ReadsTheFirstMemory(Wrapped):
    """A second bound memory reads the tensors of the first one."""

    def __init__(self, right: IWorkload) -> None:
        super().__init__(right)
        self._first: list[Handles] = []

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        self._first.append(list(inputs))
        return lambda: self.execute(self._first[0], outputs)


class _ForArrays(FunctionWorkload):
    """A workload with a function for arrays."""

    def __init__(self, step: Step, function: Callable[[Step, Sequence[Array]], None]) -> None:
        super().__init__(step.right.execute)
        self._step = step
        self._own = function

    def for_arrays(self) -> Callable[[Sequence[Array]], object]:
        return partial(self._own, self._step)


@dataclass
class WithArrays(Fault):
    """Executes on arrays in another way than on tensors."""

    function: Callable[[Step, Sequence[Array]], None]

    def wrap(self, step: Step) -> IWorkload:
        return _ForArrays(step, self.function)


def _on_arrays(step: Step, arrays: Sequence[Array], *, is_wrong: bool) -> None:
    """Execute on arrays; the last element is left out if it is wrong."""
    infos = [info for info in (*step.info.inputs, *step.info.outputs) if info is not None]
    handles = [HostTensorHandle(i, a) for i, a in zip(infos, arrays, strict=True)]
    count = len(step.info.outputs)
    step.right.execute(handles[:-count], handles[-count:])
    if is_wrong:
        spoil(np.asarray(arrays[-1]))


# --- Queues


class Joined(ICompletion):
    """The end of a thread."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def wait(self, timeout_s: float | None = None) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class _SaysNothing(Joined):
    """Does not say whether it has ended."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(timeout_s) or None  # type: ignore[return-value]  # on purpose


class Queued(Wrapped):
    """Runs on a thread, a while later."""

    completion: type[Joined] = Joined
    delay_s = 0.02

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        thread = threading.Thread(target=self._run, args=(inputs, outputs))
        thread.start()
        return type(self).completion(thread)

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        time.sleep(self.delay_s)
        with suppress(ExecutionCancelledError):  # the device is closed when the kit is done
            self.execute(inputs, outputs)


class SaysNothing(Queued):
    """Answers None in place of False."""

    completion = _SaysNothing


class OutOfOrder(Queued):
    """The later it was begun, the sooner it runs."""

    num_begun = 0

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        OutOfOrder.num_begun += 1
        time.sleep(0.03 / (OutOfOrder.num_begun % 5 + 1))
        with suppress(ExecutionCancelledError):
            self.execute(inputs, outputs)


class _Lost(Joined):
    """Never ends after it was cancelled."""

    is_lost = False

    def cancel(self) -> None:
        self.is_lost = True

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(timeout_s) and not self.is_lost


class NeverEndsIfCancelled(Queued):
    """Forgets cancelled executions, and the threads that wait for them."""

    completion = _Lost


class WrongIfCancelled(Queued):
    """Cancels what comes next as well."""

    num_cancelled = 0

    class _Noting(Joined):
        def cancel(self) -> None:
            WrongIfCancelled.num_cancelled += 1

    completion = _Noting

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if WrongIfCancelled.num_cancelled:
            WrongIfCancelled.num_cancelled -= 1
        else:
            super().execute(inputs, outputs)

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        time.sleep(0.02)
        with suppress(ExecutionCancelledError):
            self._right.execute(inputs, outputs)


class SilentInItsQueue(Queued):
    """Ends like others when something has gone wrong."""

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        with suppress(BackendError):
            super()._run(inputs, outputs)


# --- Failures, cancellations and deadlines


class Swallows(Fault):
    """What goes wrong in an execution is not said."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        try:
            step.right.execute(inputs, outputs)
        except Exception:  # noqa: BLE001  # the fault: an error of any kind is lost
            for handle in outputs:
                handle.map(read=False)[...] = 0
                handle.unmap()


class CannotBeStopped(Wrapped):
    """Never looks whether to stop."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        contextvars.Context().run(self._right.execute, inputs, outputs)


class CannotBeStoppedOnceBound(Wrapped):
    """Ignores cancellations of bound executions."""

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        return contextvars.Context().run(self._right.bind, inputs, outputs)


class StopsTooLate(CannotBeStopped):
    """Looks whether to stop when it is done, and takes its time."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        cancellation = current_cancellation()
        if cancellation is not None:
            time.sleep(0.2)
            cancellation.check()


class InTime(Wrapped):
    """Wrong where an execution has a deadline."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        cancellation = current_cancellation()
        if cancellation is not None and cancellation.deadline_s is not None:
            spoil_tensor(outputs[0])


class CallsDeadlinesCancellations(Wrapped):
    """Raises the same whyever it stops."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionTimeoutError as error:
            raise ExecutionCancelledError("stopped") from error


class StopsEarly(Wrapped):
    """Stops in half of the time that is left until a deadline."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        cancellation = current_cancellation()
        if cancellation is None or cancellation.deadline_s is None:
            super().execute(inputs, outputs)
            return
        now = time.perf_counter()
        own = Cancellation(now + (cancellation.deadline_s - now) / 2)
        timer = threading.Timer((cancellation.deadline_s - now) / 2, own.cancel)
        timer.start()
        with cancellable(own):
            super().execute(inputs, outputs)


class StopsLateAtDeadlines(Wrapped):
    """Takes its time where an execution stops at a deadline, and not where it is cancelled."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionTimeoutError:
            time.sleep(0.3)
            raise


class _WaitsLong(Joined):
    """Waits for the end, whatever the limit is."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(timeout_s if not timeout_s else None)


class WaitsLong(Queued):
    """Runs one after the other, and has no clock."""

    last: threading.Thread | None = None

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        before = WaitsLong.last

        def run() -> None:
            if before is not None:
                before.join()
            self._run(inputs, outputs)

        WaitsLong.last = thread = threading.Thread(target=run)
        thread.start()
        return _WaitsLong(thread)


class _FailsOnce(Joined):
    """Raises the error of an execution for the first one that waits."""

    def __init__(self, thread: threading.Thread, errors: list[Exception]) -> None:
        super().__init__(thread)
        self._errors = errors

    def wait(self, timeout_s: float | None = None) -> bool:
        has_ended = super().wait(timeout_s)
        if has_ended and self._errors:
            raise self._errors.pop()
        return has_ended


class FailsOnce(Wrapped):
    """Reports an error once."""

    completion: type[Joined] = _FailsOnce

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        errors: list[Exception] = []

        def run() -> None:
            try:
                self.execute(inputs, outputs)
            except Exception as error:  # noqa: BLE001 - raised by the completion
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return type(self).completion(thread, errors)  # type: ignore[call-arg]  # as `_FailsOnce`


class _HangsAfterAnError(_FailsOnce):
    """Waits for something that has failed already."""

    has_failed = False

    def wait(self, timeout_s: float | None = None) -> bool:
        if self.has_failed:
            time.sleep(60 if timeout_s is None else timeout_s)
            return False
        self.has_failed = bool(self._errors)
        return super().wait(timeout_s)


class HangsAfterAnError(FailsOnce):
    """Loses what has failed."""

    completion = _HangsAfterAnError


class SixteenAtOnce(Fault):
    """Has room for sixteen executions at once, and takes no notice of more."""

    def __init__(self) -> None:
        self._running = 0

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self._running += 1
        try:
            step.right.execute(inputs, outputs)
            time.sleep(0)
            if self._running > 16:
                spoil_tensor(outputs[0])
        finally:
            self._running -= 1


class Lost(Wrapped):
    """The device is lost, for networks that are loaded later, once an execution was stopped."""

    is_lost = False

    def __init__(self, right: IWorkload) -> None:
        super().__init__(right)
        if Lost.is_lost:
            raise BackendError("the device is lost")

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionCancelledError:
            Lost.is_lost = True
            raise


class Slower(Fault):
    """Looks through all earlier executions in each one."""

    def __init__(self) -> None:
        self._count = 0

    def after(self, call: Call) -> None:
        self._count += 1
        end_s = time.perf_counter() + self._count * 5e-6
        while time.perf_counter() < end_s:
            pass


class HoldsTheLock(Fault):
    """Native code that keeps the interpreter's lock."""

    def after(self, call: Call) -> None:
        if call.outputs[0].nbytes > 1 << 16:
            ctypes.PyDLL(None).usleep(30_000)


class WrongOnceStopped(Wrapped):
    """Does not recover from being stopped."""

    was_stopped = False

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionCancelledError:
            self.was_stopped = True
            raise
        if self.was_stopped:
            array = outputs[0].map()
            array.reshape(-1).view(np.uint8)[0] ^= 0x40
            outputs[0].unmap()


class Uncancelled(Flow):
    """Says that its loops look at cancellations."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: True}


_STOPS = {Capability.CANCELLABLE_EXECUTION: True}
"""Declared by a backend that goes on."""


EXECUTION_FAULTS: dict[str, Planted] = {
    **{
        f"blind-clock/{name}": Planted(
            "contract/executions/deadlines-differ-from-cancellations",
            OwnMemory,
            with_workloads(workload),
        )
        for name, workload in {"early": StopsEarly, "late": StopsLateAtDeadlines}.items()
    },
    "blind-queue/waits-long": Planted(
        "contract/executions/queued-executions-keep-their-order",
        OwnMemory,
        with_workloads(WaitsLong),
        "ms or more",
    ),
    **{
        f"blind-queue/{name}": Planted(
            "contract/executions/failures-are-reported", Plain, wrapping(workload), "second wait"
        )
        for name, workload in {
            "fails-once": FailsOnce,
            "hangs-after-an-error": HangsAfterAnError,
        }.items()
    },
    "blind-threads/sixteen": Planted(
        "contract/threads/many-threads-share-a-network", Plain, SixteenAtOnce
    ),
    "blind-clock/lost": Planted(
        "contract/executions/executions-after-a-stopped-one-are-right",
        OwnMemory,
        with_workloads(Lost),
    ),
    "blind-clock/slower": Planted(
        "contract/lifecycle/executions-stay-as-fast", Plain, Slower, "take"
    ),
    "blind-clock/holds-the-lock": Planted(
        "contract/threads/other-threads-go-on", Plain, HoldsTheLock, "other threads"
    ),
    "threads/fused": Planted(
        "contract/threads/threads-share-a-network", Fused, OneScratch, "4 threads"
    ),
    "threads/for-all": Planted(
        "contract/threads/threads-mix-networks-and-executions", Plain, OneScratchForAll, "networks"
    ),
    **{
        f"threads/scratch-of-{name}": Planted(
            "contract/threads/threads-race-every-operation",
            Plain,
            partial(ScratchOf, name),
            "run by 4 threads",
        )
        for name in ("Softmax", "FullyConnected")
    },
    "blind-time/one-thread": Planted(
        "contract/threads/threads-share-a-network", Plain, wrapping(OneThread)
    ),
    "blind-time/swallows": Planted("contract/executions/failures-are-reported", Plain, Swallows),
    "blind-time/uncancelled": Planted(
        "contract/executions/executions-stop-when-they-are-cancelled", Uncancelled
    ),
    "blind-object/dirty": Planted(
        "contract/executions/failures-are-reported", Plain, wrapping(DirtyAfterError)
    ),
    "blind-object/bound": Planted(
        "contract/executions/bound-executions-are-like-others", Plain, wrapping(BoundEarly)
    ),
    "executions/aligned-stores": Planted(
        "contract/caller/arrays-of-the-caller",
        Plain,
        AlignedStores,
        "written to the caller's arrays",
    ),
    "executions/fourth": Planted(
        "contract/caller/wrong-input",
        Plain,
        lambda: After(lambda n: n == 4),
        "after an unknown input was refused",
    ),
    "executions/third": Planted(
        "contract/contents/executions-are-right-each-time", Plain, lambda: After(lambda n: n == 3)
    ),
    "executions/thirtieth": Planted(
        "contract/contents/executions-are-right-each-time", Plain, lambda: After(lambda n: n == 30)
    ),
    "arrays/wrong": Planted(
        "contract/contents/functions-for-arrays-are-like-executions",
        Plain,
        lambda: WithArrays(partial(_on_arrays, is_wrong=True)),
    ),
    "arrays/nothing-written": Planted(
        "contract/contents/functions-for-arrays-are-like-executions",
        Plain,
        lambda: WithArrays(lambda step, arrays: None),
    ),
    "calls/deadline": Planted(
        "contract/calls/calls-with-every-request-are-alike", Plain, wrapping(InTime)
    ),
    "bound/reads-the-first-memory": Planted(
        "contract/executions/bound-executions-are-like-others",
        Plain,
        wrapping(ReadsTheFirstMemory),
        "bound execution",
    ),
    "declared/no-deadline": Planted(
        "contract/executions/deadlines-differ-from-cancellations",
        partial(Plain, operations={ElementwiseUnary}, capabilities=_STOPS),
        said="as if it had not been cancelled",
    ),
    "lifecycle/sleepy": Planted(
        "contract/lifecycle/executions-after-a-rest-are-right",
        Plain,
        lambda: Sleepy(0.9),
        "after a rest",
    ),
    "soak/wrong-once": Planted(
        "contract/lifecycle/executions-go-on-for-long",
        Plain,
        lambda: Once(600, lambda call: spoil(call.outputs[0])),
        "in execution 600",
        soak=1000,
    ),
    "soak/stalls-once": Planted(
        "contract/lifecycle/executions-go-on-for-long",
        Plain,
        lambda: Once(400, lambda _: time.sleep(1.0)),
        "The median",
        soak=500,
    ),
    "executions/out-of-order": Planted(
        "contract/executions/queued-executions-keep-their-order",
        OwnMemory,
        with_workloads(OutOfOrder),
        "that were enqueued one after the other",
    ),
    "executions/says-nothing": Planted(
        "contract/executions/queued-executions-keep-their-order",
        OwnMemory,
        with_workloads(SaysNothing),
        r"wait\(0.0\) returns None",
    ),
    "executions/never-ends-if-cancelled": Planted(
        "contract/executions/cancelled-completions-come-to-an-end",
        OwnMemory,
        with_workloads(NeverEndsIfCancelled),
        "cancelled execution has not ended after",
    ),
    "executions/wrong-if-cancelled": Planted(
        "contract/executions/cancelled-completions-come-to-an-end",
        OwnMemory,
        with_workloads(WrongIfCancelled),
        "after enqueued layers were cancelled",
    ),
    "executions/silent-in-its-queue": Planted(
        "contract/executions/failures-are-reported",
        OwnMemory,
        with_workloads(SilentInItsQueue),
        "enqueue accepts an invalid input",
    ),
    "executions/stops-too-late": Planted(
        "contract/executions/executions-stop-when-they-are-cancelled",
        OwnMemory,
        with_workloads(StopsTooLate),
        "a stopped execution ends after .* ms|goes on 2 s after it",
    ),
    "executions/cannot-be-stopped-once-bound": Planted(
        "contract/executions/bound-executions-stop-as-well",
        OwnMemory,
        with_workloads(CannotBeStoppedOnceBound),
        "as if it had not been cancelled|goes on 2 s after it",
    ),
    "executions/calls-deadlines-cancellations": Planted(
        "contract/executions/deadlines-differ-from-cancellations",
        OwnMemory,
        with_workloads(CallsDeadlinesCancellations),
        "expected a ExecutionTimeoutError",
    ),
    "executions/wrong-once-stopped": Planted(
        "contract/executions/executions-after-a-stopped-one-are-right",
        OwnMemory,
        with_workloads(WrongOnceStopped),
        "after an execution was stopped, the output",
    ),
}
"""By class and name."""
