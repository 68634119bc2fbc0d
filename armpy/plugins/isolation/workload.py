"""Executes prepared parts in a worker, with tensors in shared memory."""

from __future__ import annotations

import os
import socket
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent import futures
from contextlib import ExitStack, suppress
from functools import partial
from typing import NoReturn, TypeVar

import numpy as np

from armpy.backend import (
    Cancellation,
    ITensorHandle,
    IWorkload,
    current_cancellation,
    current_timing,
)
from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.core.apart import begin_apart
from armpy.core.processes.fitness import UnfitError
from armpy.core.processes.kept_process import wait_readable
from armpy.core.processes.protocol import WorkerGoneError, error_from_fields
from armpy.errors import BackendError, DeadObjectError, QueueFullError
from armpy.ops.operation import Array
from armpy.plugins.isolation.limits import IsolationLimits
from armpy.plugins.isolation.messages import (
    DONE,
    GO,
    GO_TIMED,
    MAX_FAILURE_BYTES,
    OPEN,
    is_whole,
    parse_failure,
)
from armpy.plugins.isolation.shared_block import create_block, device_time, map_block, stop_flag
from armpy.plugins.isolation.supervisor import IsolatedPart, Supervisor
from armpy.plugins.isolation.worker_process import UNKNOWN, WorkerProcess

# Half of the 10 ms within which a stop is promised to be effective.
_TICK_S = 0.005
"""How often an execution looks whether it is to stop."""
_SPIN_S = 100e-6
"""How long an answer is looked for before the thread sleeps; to be waked takes 40 us here."""
# On a single processor the worker cannot run while this thread looks.
_CAN_SPIN = (os.cpu_count() or 1) > 1
Handles = Sequence[ITensorHandle | None]
T = TypeVar("T")


class _LostError(Exception):
    """An execution that a worker did not end; `is_culprit` if no other can be the reason."""

    def __init__(self, error: DeadObjectError, is_culprit: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_culprit = is_culprit


class Place:
    """Executor of one part in one worker, one execution at a time.

    Raises ArmpyError as for `Worker.request`; OSError if the application can have no more
    descriptors or shared memory.

    Attributes
    ----------
    inputs, outputs : list of ndarray
        Arrays in shared memory.
    thread : object
        The worker's thread for it, as fault reports call it.
    """

    def __init__(
        self,
        part: IsolatedPart,  # which the worker has prepared
        worker: WorkerProcess,
        timeout_s: float,  # how long opening may take
    ) -> None:
        self.worker = worker
        with ExitStack() as kept, ExitStack() as sent:
            self._connection, theirs = socket.socketpair()
            kept.enter_context(self._connection)
            sent.enter_context(theirs)
            self._connection.setblocking(False)
            block = create_block(part.layout.size_bytes)
            sent.callback(os.close, block)
            memory = map_block(block)
            answer = worker.request((OPEN, part.number), [theirs, block], timeout_s=timeout_s)
            self.thread = answer.get("thread")
            # When it is closed, the worker's thread for this place reads the end, and ends.
            weakref.finalize(self, kept.pop_all().close)
        self._stop = stop_flag(memory)
        self._device_time = device_time(memory)
        arrays = part.layout.arrays(memory)
        self.inputs, self.outputs = arrays[: part.num_inputs], arrays[part.num_inputs :]

    def run(
        self,
        sources: Sequence[Array],
        targets: Sequence[Array],
        cancellation: Cancellation | None,
        limits: IsolationLimits,
    ) -> None:
        """Execute once; tensors are copied to and from shared memory.

        Raises ArmpyError (what went wrong there); _LostError if the worker has ended, or was ended
        as it is late.
        """
        for mine, shared in zip(sources, self.inputs, strict=True):
            shared[...] = mine
        worker, connection, timing = self.worker, self._connection, current_timing()
        # Before the byte goes out, as the worker may die of it at once.
        worker.busy.add(self)
        try:
            try:
                connection.send(GO if timing is None else GO_TIMED)
                answer = self._first_of_answer()
                if not is_whole(answer):
                    answer = self._await(answer, cancellation, limits)
            except OSError:  # the connection is closed
                answer = b""
            if answer != DONE:
                self._fail(answer, cancellation)
        except _LostError:
            raise  # other requests lost with the worker look at the running one
        except BaseException:
            worker.busy.discard(self)
            raise
        worker.busy.discard(self)
        if timing is not None and self._device_time[0] >= 0:
            timing.add_device_time(int(self._device_time[0]) / 1000)
        for mine, shared in zip(targets, self.outputs, strict=True):
            mine[...] = shared

    def _first_of_answer(self) -> bytes:
        """What comes within a moment: to sleep and be waked would take longer than most."""
        end = time.perf_counter() + _SPIN_S
        while True:
            with suppress(BlockingIOError):
                return self._piece()
            if not _CAN_SPIN or not hasattr(os, "sched_yield") or time.perf_counter() >= end:
                return b""
            os.sched_yield()  # to the worker, if it has no other processor

    def _piece(self) -> bytes:
        """Some bytes of an answer; raises OSError, BlockingIOError if there are none yet."""
        piece = self._connection.recv(MAX_FAILURE_BYTES)
        if not piece:
            raise ConnectionResetError("the worker has closed the connection")
        return piece

    def _await(
        self, answer: bytes, cancellation: Cancellation | None, limits: IsolationLimits
    ) -> bytes:
        """The whole of an answer that has begun like this; empty if the worker has ended."""
        late_at = time.perf_counter() + limits.timeout_s
        limit = f"timeout_s, {limits.timeout_s:g} s"
        deadline_s = None if cancellation is None else cancellation.deadline_s
        if deadline_s is not None and deadline_s + limits.grace_s < late_at:
            # The deadline stops it by the flag; the process is ended only if that is not heeded.
            late_at = deadline_s + limits.grace_s
            limit = f"its deadline and grace_s, {limits.grace_s:g} s"
        try:
            while not is_whole(answer):
                if cancellation is not None and cancellation.is_cancelled:
                    self._stop[0] = 1
                # It comes back at every tick, so that a stop and a dead worker are noticed.
                if wait_readable(self._connection, _TICK_S):
                    answer += self._piece()
                elif not self.worker.is_running:  # and something of its own keeps the socket open
                    return b""
                if time.perf_counter() >= late_at and not is_whole(answer):
                    self._give_up(f"an execution took longer than {limit}")
            return answer
        finally:
            # The next execution in this place has the same word.
            self._stop[0] = 0

    def _fail(self, answer: bytes, cancellation: Cancellation | None) -> None:
        if not answer:
            raise self._lost()
        try:
            error = error_from_fields(parse_failure(answer))
        except UnfitError as unfit:
            self._give_up(str(unfit))
        except WorkerGoneError as gone:
            self._give_up(f"it does not keep to the protocol: {gone}")
        if cancellation is not None and cancellation.is_cancelled:
            raise cancellation.error  # the worker does not know why it was asked to stop
        raise error

    def _give_up(self, reason: str) -> NoReturn:
        worker = self.worker
        if worker.culprit is None:
            worker.culprit = self  # before others see that it has ended
        worker.kill(reason)
        raise self._lost()

    def _found_culprit(self) -> object:
        """Return which of several executions has ended the worker, if its fault report shows it."""
        thread = self.worker.faulting_thread()
        for other in [*self.worker.busy]:
            if isinstance(other, Place) and other.thread == thread:
                return other
        return UNKNOWN

    def _lost(self) -> _LostError:
        worker = self.worker
        if worker.culprit is None:
            worker.culprit = self if worker.busy <= {self} else self._found_culprit()
        return _LostError(worker.dead_object(), worker.culprit is self)


def _begin(wait_for_worker: Callable[[], T], where: str) -> futures.Future[T]:
    """Begin to wait for a worker, on a thread that an execution which is stopped leaves alone.

    Raises QueueFullError if the process can have no thread for it.
    """
    try:
        return begin_apart(wait_for_worker, f"armpy waits for {where}")
    except RuntimeError as error:
        raise QueueFullError(
            f"no thread can be started to wait for the backend's process: {error}",
            where=where,
            fix="Let the process have more threads (ulimit -u), or run without a deadline",
        ) from error


def _result(waiting: futures.Future[T], cancellation: Cancellation) -> T:
    """What was waited for; raises the error of `cancellation` if the execution is stopped first."""
    while not futures.wait([waiting], _TICK_S).done:
        cancellation.check()
    return waiting.result()


class IsolatedWorkload(IWorkload):
    """A part that is executed in whichever worker its supervisor has."""

    def __init__(
        self, part: IsolatedPart, supervisor: Supervisor, taken: Sequence[int] | None = None
    ) -> None:
        self._part = part
        self._supervisor = supervisor
        self._taken = taken  # which of the layer's inputs the part's are; all if left out
        self._idle: list[Place] = []
        # Places that executions which were stopped had begun to wait for.
        self._begun: list[futures.Future[Place]] = []

    def execute(self, inputs: Handles, outputs: Sequence[ITensorHandle]) -> None:
        """Execute once; raises DeadObjectError if this execution ends workers."""
        self.bind(inputs, outputs)()

    def bind(self, inputs: Handles, outputs: Sequence[ITensorHandle]) -> Callable[[], None]:
        """Prepare executions with the same tensors."""
        cancellation = current_cancellation()
        chosen = inputs if self._taken is None else [inputs[i] for i in self._taken]
        read = [handle for handle in chosen if handle is not None]
        # Exactly this class: arrays of others may move, or be there only while they are mapped.
        if not all(type(handle) is HostTensorHandle for handle in (*read, *outputs)):
            return partial(self._run_mapped, read, outputs, cancellation)
        sources = [handle.map(write=False) for handle in read]
        targets = [handle.map(read=False) for handle in outputs]
        return partial(self._run, sources, targets, cancellation)

    def free_idle_memory(self) -> None:
        """Give back shared memory that no execution is using."""
        self._idle.clear()
        self._begun.clear()

    def _run(
        self,
        sources: Sequence[Array],
        targets: Sequence[Array],
        cancellation: Cancellation | None,
    ) -> None:
        """Execute once, and again where another execution has ended the worker."""
        supervisor, place = self._supervisor, self._take(cancellation)
        try:
            # It may have been replaced since the place was taken.
            if place.worker is not supervisor.current:
                place = self._take(cancellation)
            place.run(sources, targets, cancellation, supervisor.limits)
        except _LostError as lost:
            supervisor.replace(place.worker)
            if lost.is_culprit:
                raise lost.error from None
            if place.worker.culprit is not UNKNOWN:
                # Another execution is at fault, so this one does not endanger the next worker.
                self._run(sources, targets, cancellation)
                return
            # Each of several executions has a process for itself, so that only the one at fault
            # fails.
            self._run_alone(sources, targets, cancellation, lost)
        else:
            self._idle.append(place)

    def _run_alone(
        self,
        sources: Sequence[Array],
        targets: Sequence[Array],
        cancellation: Cancellation | None,
        lost: _LostError,
    ) -> None:
        """Execute again, in a worker that is there for this execution alone."""
        supervisor = self._supervisor
        workers: list[WorkerProcess] = []

        def open_alone() -> Place:
            workers.append(supervisor.fresh())
            return self._open(workers[0])

        def end(_: object) -> None:
            for worker in workers:
                supervisor.discard(worker)

        if cancellation is None:
            cancellation = Cancellation()  # which nobody stops
        opening = _begin(open_alone, supervisor.backend_id)
        try:
            place = _result(opening, cancellation)
            place.run(sources, targets, cancellation, supervisor.limits)
        except _LostError as again:
            raise again.error from lost.error
        finally:
            opening.add_done_callback(end)

    def _run_mapped(
        self,
        inputs: Sequence[ITensorHandle],
        outputs: Sequence[ITensorHandle],
        cancellation: Cancellation | None,
    ) -> None:
        """Execute with tensors that may be in another memory than the host's."""
        sources = [np.empty(h.info.known_shape, h.info.data_type.dtype) for h in inputs]
        targets = [np.empty(h.info.known_shape, h.info.data_type.dtype) for h in outputs]
        for handle, source in zip(inputs, sources, strict=True):
            handle.copy_out_to(source)
        self._run(sources, targets, cancellation)
        for handle, target in zip(outputs, targets, strict=True):
            handle.copy_in_from(target)

    def _take(self, cancellation: Cancellation | None) -> Place:
        """A place for this execution alone.

        Raises ArmpyError if there is none; the error of `cancellation` if it comes first.
        """
        worker = self._supervisor.current
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                place = self._idle.pop()
                # Places of a worker that is gone are dropped here.
                if place.worker is worker:
                    return place
        take = partial(self._supervisor.with_worker, self._open)
        if cancellation is None:
            return take()
        cancellation.check()
        waiting = self._begun_before() or _begin(take, self._supervisor.backend_id)
        try:
            return _result(waiting, cancellation)
        finally:
            # It goes on: a worker that takes longer to start than executions may take would never
            # be there otherwise. The next execution takes what comes of it.
            if not waiting.done():
                self._begun.append(waiting)

    def _begun_before(self) -> futures.Future[Place] | None:
        """What an execution that was stopped had begun to wait for, if it can still be used."""
        while self._begun:
            with suppress(IndexError):  # another thread was faster
                waiting = self._begun.pop()
                if not waiting.done():
                    return waiting
                is_made = waiting.exception() is None
                if is_made and waiting.result().worker is self._supervisor.current:
                    return waiting
        return None

    def _open(self, worker: WorkerProcess) -> Place:
        supervisor = self._supervisor
        supervisor.prepare(self._part, worker)
        try:
            return Place(self._part, worker, supervisor.limits.preparation_timeout_s)
        except OSError as error:
            raise BackendError(
                f"the application cannot execute in the backend's process: {error}",
                where=supervisor.backend_id,
                fix="Let the application open more files (ulimit -n), or have fewer open",
            ) from error
