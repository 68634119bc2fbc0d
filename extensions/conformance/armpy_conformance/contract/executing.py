"""Rules about executions: bound ones, queued ones, and those that are stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from armpy.backend import (
    Cancellation,
    Capability,
    ICompletion,
    ITensorHandle,
    cancellable,
    has_matching_capability,
)
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.contract.case import (
    NothingToKeepError,
    ViolationError,
    check,
)
from armpy_conformance.contract.demanding import demanding, enlarged, enlarged_bytes, is_taken
from armpy_conformance.contract.driven import Driven, ExecutionTensors, backend_of_runtime
from armpy_conformance.contract.networks import (
    Bench,
    bench,
    chain,
    chain_of,
    link_of,
    sample_bench,
    samples,
)
from armpy_conformance.differential_run import other_feeds

_LAYERS = 5
_WAIT_S = 20.0

_AGAIN_S = 2.0
"""Time limit of a second wait for something that has ended."""

_SHORT_S = 0.001
_LATE_S = 0.009
"""How much longer the shortest of some waits may take."""

LONG_S = 0.2
"""How long an execution takes that is worth stopping."""

STOP_S = 0.06
"""Within what an execution stops: 10 ms, and 50 for a machine that has other things to do."""

_FAR_TOO_LATE_S = 2.0
"""An execution that runs so long after a cancellation has not seen it on any machine."""

_MOST_S = 10 * LONG_S
"""Executions that take longer are stopped only where there are no shorter ones to stop."""

_ATTEMPTS = 16
_ENOUGH = 2
_MOST_BYTES = 48 << 20
_CHAIN_BYTES = 4 << 20
_MOST_LAYERS = 4096


def _chained(subject: BackendUnderTest) -> Driven:
    """A chain of layers, all of which are outputs."""
    builder = chain(subject)
    value = builder.source
    for number in range(_LAYERS):
        value = builder.layer(value)
        builder.net.output(f"y{number}", value)
    return Driven(backend_of_runtime(subject), builder.bench(subject))


def _feeds(driven: Driven) -> tuple[Mapping[str, Array], ...]:
    """Inputs of executions that follow each other."""
    first = driven.bench.feeds
    return (first, other_feeds(driven.bench.graph, first), first)


def bound_executions_are_like_others(subject: BackendUnderTest) -> None:
    """Bound executions read their tensors' current elements, beside unbound executions."""
    backend = backend_of_runtime(subject)
    drivens = [Driven(backend, sample_bench(subject, case)) for case in samples(subject)]
    for driven in (*drivens, _chained(subject)):
        memories = [driven.memory() for _ in range(2)]
        with driven.held():
            bound = [memory.bound() for memory in memories]
            trials = [bench(subject, driven.bench.graph, feeds) for feeds in _feeds(driven)]
            for pair in pairwise(trials):
                # Both are fed before one runs: each has to read the tensors of its own.
                for memory, trial in zip(memories, pair, strict=True):
                    memory.feed(trial.feeds)
                for calls in bound:
                    _finish([call() for call in calls])
                for memory, trial in zip(memories, pair, strict=True):
                    trial.check(memory.read(), "in a bound execution beside another one")
            driven.run(memories[0], "beside bound executions")
        for memory in memories:
            memory.release()


def _finish(answers: Sequence[object]) -> None:
    """Wait for what bound executions have left under way, in order."""
    for answer in answers:
        if isinstance(answer, ICompletion):
            answer.wait()


def queued_executions_keep_their_order(subject: BackendUnderTest) -> None:
    """Layers that are enqueued one after the other run in this order, and end when they say so."""
    driven = _chained(subject)
    memory = driven.memory()
    waits_s: list[float] = []
    every = _feeds(driven)
    with driven.held():
        for number, feeds in enumerate(every * _ATTEMPTS):
            # Other load can only delay a wait.
            if number >= 3 * len(every) and min(waits_s) <= _SHORT_S + _LATE_S:
                break
            memory.feed(feeds)
            completions = memory.enqueue()
            if not completions:
                raise NothingToKeepError("its executions have ended when enqueue returns")
            last, *others = reversed(completions)
            waits_s.append(_check_end(last))
            for completion in others:  # which have ended with the last one
                _check_end(completion)
            trial = bench(subject, driven.bench.graph, feeds)
            trial.check(memory.read(), "of layers that were enqueued one after the other")
    memory.release()
    check(
        min(waits_s) <= _SHORT_S + _LATE_S,
        f"wait({_SHORT_S}) takes {min(waits_s) * 1e3:.0f} ms or more. Expected about 1 ms",
    )


def _check_end(completion: ICompletion) -> float:
    """Check that a completion reports the end, repeatedly; seconds of a wait for 1 ms."""
    soon = completion.wait(0.0)
    check(isinstance(soon, bool), f"wait(0.0) returns {soon!r}")
    started = time.perf_counter()
    completion.wait(_SHORT_S)
    waited_s = time.perf_counter() - started
    check(completion.wait() is True, "wait() without a limit returns before the end")
    check(completion.wait(0.0) is True, "wait(0.0) returns False for an execution that has ended")
    return waited_s


def cancelled_completions_come_to_an_end(subject: BackendUnderTest) -> None:
    """Waiting for a cancelled execution ends soon, and the next one is right."""
    driven = _chained(subject)
    memory = driven.memory()
    for _ in range(5):
        with driven.held():
            memory.feed(driven.bench.feeds)
            completions = memory.enqueue()
            if not completions:
                raise NothingToKeepError("its executions have ended when enqueue returns")
            for completion in completions:
                completion.cancel()
            for completion in completions:
                _check_cancelled(completion)
        driven.run(memory, "after enqueued layers were cancelled")
    memory.release()


def _check_cancelled(completion: ICompletion) -> None:
    """Check that something ends that was cancelled: as if it was not, or with the right error."""
    try:
        has_ended = completion.wait(_WAIT_S)
    except ExecutionCancelledError:
        return
    check(has_ended, f"the cancelled execution has not ended after {_WAIT_S:.0f} s")


class _Unusable(ITensorHandle):
    """An unusable tensor."""

    def __init__(self, info: TensorInfo) -> None:
        self._info = info

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        raise _UnusableError("the kit's tensor cannot be mapped")


class _UnusableError(Exception):
    """Error of a tensor that cannot be mapped, raised by any use of it."""


def failures_are_reported(subject: BackendUnderTest) -> None:
    """An execution that cannot be done raises, at once or when its end is waited for."""
    driven = _chained(subject)
    memory = driven.memory()
    step = driven.steps[0]
    inputs, outputs = memory.of(step)
    spoilt = [_Unusable(h.info) if h is not None else None for h in inputs]
    with driven.held():
        for method in ("execute", "enqueue", "bind"):
            completion: ICompletion | None = None
            try:
                outcome = getattr(step.workload, method)(spoilt, outputs)
                if method == "bind":
                    outcome = outcome()
                completion = outcome if isinstance(outcome, ICompletion) else None
                if completion is not None:
                    completion.wait(_WAIT_S)
            except Exception:  # noqa: BLE001 - any error reports the failure
                if completion is not None:
                    _check_failed(completion)
                continue
            raise ViolationError(f"{method} accepts an invalid input")
    driven.run(memory, "after an execution that could not be done")
    memory.release()


def _check_failed(completion: ICompletion) -> None:
    """Check that a failure is reported to each one that waits."""
    try:
        has_ended = completion.wait(_AGAIN_S)
    except Exception:  # noqa: BLE001 - any error reports the failure
        return
    now = "as if it had succeeded" if has_ended else "only at its limit"
    raise ViolationError(f"a second wait for an execution that has failed returns {now}")


def _long(subject: BackendUnderTest) -> tuple[Driven, ExecutionTensors]:
    """An execution that takes long enough to be stopped."""
    capabilities = subject.backend.get_capabilities()
    if not has_matching_capability(Capability.CANCELLABLE_EXECUTION, True, capabilities):
        raise NothingToKeepError("it does not say that its executions can be stopped")
    backend = backend_of_runtime(subject)
    if not subject.repeats:
        subject.repeats = _long_case(subject, backend)
    for case, size, num_layers in subject.repeats:
        return _fed(backend, case, size, num_layers)
    raise ViolationError(
        f"it declares {Capability.CANCELLABLE_EXECUTION}, and no network of {_MOST_LAYERS} layers "
        f"that the kit can make of its operations takes {LONG_S} s, so that none can be stopped. "
        "Withdraw the declaration"
    )


def _long_case(
    subject: BackendUnderTest, backend: BackendProxy
) -> tuple[tuple[Case, int, int], ...]:
    """The first case that takes neither too short nor too long, else the shortest of the others.

    Where every layer is too short, a chain of them is long enough.
    """
    longer = []
    for duration_s, case, size in _long_cases(subject, backend):
        if duration_s <= _MOST_S:
            return ((case, size, 1),)
        longer.append((duration_s, case, size))
    shortest = min(longer, key=lambda timing: timing[0], default=None)
    return ((*shortest[1:], 1),) if shortest else tuple(islice(_chains(subject, backend), 1))


def _chains(subject: BackendUnderTest, backend: BackendProxy) -> Iterator[tuple[Case, int, int]]:
    """Cases, how often their inputs are repeated, and how many layers take long enough."""
    for case in demanding(subject):
        if link_of(case) is None or not enlarged_bytes(case, 1):
            continue
        size = max(1, _CHAIN_BYTES // enlarged_bytes(case, 1))
        if not is_taken(subject, enlarged(case, size)):
            continue
        num_layers = 8
        while num_layers <= _MOST_LAYERS:
            driven, memory = _fed(backend, case, size, num_layers)
            _timed(driven, memory)  # the first one may prepare something
            duration_s = _timed(driven, memory)
            memory.release()
            if duration_s >= LONG_S:
                yield case, size, num_layers
                break
            growth = 1.5 * LONG_S / max(duration_s, 1e-6)
            num_layers *= int(min(max(growth, 2), 64))


def _long_cases(
    subject: BackendUnderTest, backend: BackendProxy
) -> Iterator[tuple[float, Case, int]]:
    """Cases, how often their inputs have to be repeated for a long execution, and its seconds."""
    for case in demanding(subject):
        size = 1
        while 0 < enlarged_bytes(case, size) <= _MOST_BYTES:
            try:
                if not is_taken(subject, enlarged(case, size)):
                    break
                driven, memory = _fed(backend, case, size)
            except ArmpyError:  # the device has less memory than the kit
                break
            duration_s = _timed(driven, memory)
            if duration_s <= _MOST_S:  # the first one may have prepared something
                duration_s = min(duration_s, _timed(driven, memory))
            memory.release()
            if duration_s >= LONG_S:
                yield duration_s, case, size
                break
            growth = 1.5 * LONG_S / max(duration_s, 1e-6)
            size *= int(min(max(growth, 2), 64))


def _fed(
    backend: BackendProxy, case: Case, size: int, num_layers: int = 1
) -> tuple[Driven, ExecutionTensors]:
    """A case with its inputs repeated, once or in a chain, and memory that holds them."""
    larger = enlarged(case, size)
    link = link_of(larger)
    if num_layers == 1 or link is None:
        trial = Bench(larger.graph(), larger.feeds(), {})
    else:
        trial = chain_of(larger, link, num_layers)
    driven = Driven(backend, trial)
    memory = driven.memory()
    memory.feed(driven.bench.feeds)
    return driven, memory


def _timed(driven: Driven, memory: ExecutionTensors) -> float:
    """Execute every step; seconds that it took."""
    with driven.held():
        started = time.perf_counter()
        for step in driven.steps:
            step.workload.execute(*memory.of(step))
        return time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class _Stop:
    """End of an execution that was to stop: when, counted from then, and the error."""

    after_s: float
    error: Exception | None

    @property
    def is_soon(self) -> bool:
        """Return whether it has stopped in time, and not come to its end before."""
        return self.error is not None and self.after_s <= STOP_S


def _stopped(
    driven: Driven, memory: ExecutionTensors, *, has_deadline: bool = False, is_bound: bool = False
) -> _Stop:
    """Begin an execution in another thread, and stop it in the midst of it."""
    delay_s = LONG_S / 4
    deadline_s = time.perf_counter() + delay_s if has_deadline else None
    cancellation = Cancellation(deadline_s)
    ended: list[tuple[float, Exception | None]] = []

    def run() -> None:
        error = None
        try:
            with cancellable(cancellation):
                if is_bound:
                    with driven.held():
                        _finish([call() for call in memory.bound()])
                else:
                    _timed(driven, memory)
        except Exception as raised:  # noqa: BLE001 - checked by the thread that stopped it
            error = raised
        ended.append((time.perf_counter(), error))

    thread = threading.Thread(target=run, name="armpy-kit-stopped", daemon=True)
    thread.start()
    time.sleep(delay_s)
    # On a busy machine this thread wakes up long after the deadline.
    stopped = time.perf_counter() if deadline_s is None else deadline_s
    cancellation.cancel()
    thread.join(_FAR_TOO_LATE_S)
    if not ended:
        thread.join(_WAIT_S)  # what comes next should not have to share the device with it
        now = "has ended only then" if ended else f"has not ended after {_WAIT_S:.0f} s more"
        raise ViolationError(
            f"an execution goes on {_FAR_TOO_LATE_S:g} s after it was cancelled, and {now}. "
            "Expected it to stop within 10 ms"
        )
    ((end, error),) = ended
    return _Stop(end - stopped, error)


def executions_stop_when_they_are_cancelled(subject: BackendUnderTest) -> None:
    """A long execution raises within 10 ms of its cancellation; the kit allows for load."""
    _check_stops(subject)


def bound_executions_stop_as_well(subject: BackendUnderTest) -> None:
    """So does one that was bound while the cancellation was the current one."""
    _check_stops(subject, is_bound=True)


def _check_stops(
    subject: BackendUnderTest, *, is_bound: bool = False, has_deadline: bool = False
) -> None:
    """Stop some executions, and record the errors raised and their times."""
    driven, memory = _long(subject)
    stops: list[_Stop] = []
    # Other load can only delay a stop: two quick ones suffice.
    while len(stops) < _ATTEMPTS and sum(stop.is_soon for stop in stops) < _ENOUGH:
        stops.append(_stopped(driven, memory, is_bound=is_bound, has_deadline=has_deadline))
    _check_errors(stops, ExecutionTimeoutError if has_deadline else ExecutionCancelledError)
    times_s = sorted(stop.after_s for stop in stops if stop.error is not None)
    after_s = times_s[:_ENOUGH][-1]
    check(
        after_s <= STOP_S,
        f"a stopped execution ends after {after_s * 1e3:.0f} ms. Expected 10 ms, or at most "
        f"{STOP_S * 1e3:.0f} on a machine that has other things to do",
    )
    check(
        times_s[0] >= -_LATE_S,
        f"an execution stops {-times_s[0] * 1e3:.0f} ms before it is stopped",
    )
    memory.release()


def _check_errors(stops: Sequence[_Stop], kind: type[ArmpyError]) -> None:
    """Check the raised errors; executions that have ended all the same raise none."""
    errors = [stop.error for stop in stops if stop.error is not None]
    check(errors, "a cancelled execution ends as if it had not been cancelled")
    for error in errors:
        shown = f"{type(error).__name__}: {error}"
        check(isinstance(error, kind), f"expected a {kind.__name__}, it raises {shown}")


def deadlines_differ_from_cancellations(subject: BackendUnderTest) -> None:
    """Executions stop at their deadline, not before it, with an ExecutionTimeoutError."""
    _check_stops(subject, has_deadline=True)


def executions_after_a_stopped_one_are_right(subject: BackendUnderTest) -> None:
    """The same working memory, fed again, gives the same results."""
    driven, memory = _long(subject)
    _timed(driven, memory)
    wanted = memory.read()
    for _ in range(3):
        _stopped(driven, memory)
        memory.feed(driven.bench.feeds)
        _timed(driven, memory)
        for name, array in memory.read().items():
            same = array.tobytes() == wanted[name].tobytes()
            check(same, f"after an execution was stopped, the output '{name}' is another one")
    memory.release()
    for case in samples(subject):
        driven = Driven(backend_of_runtime(subject), sample_bench(subject, case))
        driven.run(driven.memory(), "prepared after an execution was stopped")
