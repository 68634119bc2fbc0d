"""The supervisor: keeps one worker of a backend running, and a spare one that is ready."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any, TypeVar

from armpy.backend import IBackendContext, OptionValues
from armpy.backend.preparation import are_compilations_postponed
from armpy.core.apart import begin_apart
from armpy.errors import ArmpyError, CompilationPostponedError, DeadObjectError
from armpy.graph import Graph
from armpy.plugins.isolation.limits import IsolationLimits, IsolationStatus
from armpy.plugins.isolation.messages import PREPARE, RELEASE, BackendSource
from armpy.plugins.isolation.parts import PackedPart, pack
from armpy.plugins.isolation.shared_block import TensorLayout
from armpy.plugins.isolation.worker_process import NO_EXECUTION, UNKNOWN, WorkerProcess

_log = logging.getLogger("armpy.plugins.isolation")
_numbers = itertools.count(1)
T = TypeVar("T")


class IsolatedPart:
    """A part of a network, to be prepared by whichever worker is there."""

    def __init__(
        self,
        graph: Graph,
        model_options: OptionValues,
        *,
        relaxed: bool,  # whether float32 may be computed less exactly
    ) -> None:
        self.number = next(_numbers)
        self.infos = tuple(v.info for v in (*graph.inputs, *graph.outputs))  # of inputs and outputs
        self.num_inputs = len(graph.inputs)
        self.layout = TensorLayout(self.infos)
        self.description = f"{len(graph.layers)} layers from {graph.layers[0].where}"
        self.packed: PackedPart = pack(graph, model_options, relaxed=relaxed)
        # The block stays with the part, as each later worker is sent the same one.
        weakref.finalize(self, os.close, self.packed.descriptor)

    def __str__(self) -> str:
        return self.description


class Supervisor(IBackendContext):
    """Keeps a backend's worker running, and ends it with the runtime.

    Attributes
    ----------
    current : WorkerProcess or None
        The worker; None while there is none.
    """

    def __init__(
        self,
        source: BackendSource,
        limits: IsolationLimits,
        options: OptionValues,  # of scope RUNTIME
        first: WorkerProcess | None = None,  # a worker to begin with, which is not configured yet
    ) -> None:
        self.backend_id = source.backend_id
        self.limits = limits
        self._source = source
        self._options = dict(options)
        self._parts: weakref.WeakSet[IsolatedPart] = weakref.WeakSet()
        self._begin()
        self._failures: deque[float] = deque()
        self._num_failures = 0
        self._last_failure = ""
        self._last_failure_s: float | None = None
        self._free_at = 0.0
        self._in_force: dict[str, str] = {}
        self._is_closed = False
        # Known to the fork handler, of which the process has one: handlers cannot be taken back.
        _supervisors.add(self)
        if first is not None:
            first.configure(self._options)
            self._take_over(first)

    def _begin(self) -> None:
        # The parent's workers answer the parent, and threads that are gone may hold its locks.
        self._lock = threading.RLock()  # never held while a worker is waited for
        self._start_lock = threading.RLock()  # held while the next worker is started
        self._end_lock = threading.Lock()  # held while ends are waited for
        self._spare_lock = threading.Lock()  # never held while a spare worker is waited for
        self.current: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None
        self._starting: threading.Thread | None = None
        self._hurry = threading.Event()
        self._dead: list[WorkerProcess] = []

    def close(self) -> None:
        """End every process; nothing can be run afterwards."""
        with self._lock:
            self._is_closed = True
            workers = [self.current, self._spare]
            self.current = self._spare = None
            starting = self._starting
            self._hurry.set()
        for worker in filter(None, workers):
            worker.close(self.limits.grace_s)
        # Without the lock, which that thread may want.
        if starting is not None and starting is not threading.current_thread():
            starting.join()  # its children end themselves then
        self._bury()

    @property
    def status(self) -> IsolationStatus:
        """Return how the backend's process is."""
        current = self.current
        running = current is not None and current.is_running
        return IsolationStatus(
            self.backend_id,
            current.pid if current is not None and running else None,
            self._spare is not None and self._spare.is_running,
            self._num_failures,
            max(self._free_at - time.monotonic(), 0.0),
            self._last_failure,
            self._last_failure_s,
            dict(self._in_force),
        )

    def add(self, part: IsolatedPart) -> None:
        """Let the worker forget a part with its last reference."""
        self._parts.add(part)

    def worker(self) -> WorkerProcess:
        """The worker, started if need be.

        Raises DeadObjectError if the backend is in quarantine, or none can be started.
        """
        current = self.current
        if current is not None:
            return current
        with self._start_lock:
            current = self.current
            if current is None:
                current = self._next()
                with self._lock:
                    if not self._is_closed:
                        self._take_over(current)
            if self._is_closed:
                self.discard(current)
                self._check_allowed()
            return current

    def prepare(
        self, part: IsolatedPart, worker: WorkerProcess, timeout_s: float | None = None
    ) -> None:
        """Let a worker prepare a part, if it has not.

        Raises ArmpyError (what goes wrong there); DeadObjectError if the worker ends; it is
        replaced then.
        """
        # Without the lock, as a worker that has a part keeps it as long as the part is there.
        if part.number in worker.prepared:
            return
        limit = self.limits.preparation_timeout_s if timeout_s is None else timeout_s
        # Preparing may end the worker as well, and is then among what may be at fault.
        worker.busy.add(part)
        try:
            with worker.preparing, self.deaths_of(worker):
                if part.number not in worker.prepared:  # by another thread, meanwhile
                    self._send(part, worker, limit)
        except DeadObjectError:
            if worker.culprit is None:
                # An execution that was alone under way has ended it; of several, any may have.
                worker.culprit = part if worker.busy <= {part} else UNKNOWN
            raise
        finally:
            worker.busy.discard(part)
        if worker is self.current and self.limits.keep_spare:
            self._start_spare()  # which is to have it, too

    def _send(self, part: IsolatedPart, worker: WorkerProcess, timeout_s: float) -> None:
        # Here and not when a part goes: that may be in the garbage collector, anywhere.
        for number in worker.prepared - {other.number for other in [*self._parts]}:
            worker.prepared.discard(number)
            worker.request((RELEASE, number), timeout_s=self.limits.start_timeout_s)
        packed = part.packed
        postpones = are_compilations_postponed()
        request = (PREPARE, part.number, packed.pickle_bytes, packed.buffers, postpones)
        worker.request(request, [packed.descriptor], timeout_s=timeout_s)
        worker.prepared.add(part.number)

    def with_worker(self, task: Callable[[WorkerProcess], T]) -> T:
        """Do something that a worker is needed for, once more where the first could not serve.

        Raises ArmpyError (what goes wrong there); DeadObjectError if the worker ends otherwise, or
        the next cannot serve either.
        """
        worker = self.worker()
        try:
            with self.deaths_of(worker):
                return task(worker)
        except DeadObjectError:
            # A request that has ended a worker is not tried on the next one.
            if worker.culprit is not NO_EXECUTION:
                raise
        worker = self.worker()
        with self.deaths_of(worker):
            return task(worker)

    @contextlib.contextmanager
    def deaths_of(self, worker: WorkerProcess) -> Iterator[None]:
        """Requests to a worker, which is replaced if it ends."""
        try:
            yield
        except CompilationPostponedError as error:
            error.backend_id = self.backend_id  # which fields of errors do not have
            raise
        except DeadObjectError:
            self.replace(worker)
            raise

    def replace(self, worker: WorkerProcess) -> None:
        """Put another worker in the place of one that has failed; the first call counts."""
        with self._lock:
            # Each execution that was under way finds it dead; it is one failure.
            if self.current is not worker:
                return
            self.current = None
            self._note_failure(worker)
            # The spare takes over now, so that the next execution does not wait for a start.
            is_allowed = not self._is_closed and self._free_at <= time.monotonic()
            if is_allowed and (spare := self._ready_spare()) is not None:
                self._take_over(spare)
        self.discard(worker)

    def discard(self, worker: WorkerProcess) -> None:
        """End a worker; another thread waits for its end, which takes a while for large ones."""
        self._dead.append(worker)
        try:
            begin_apart(self._bury, f"armpy-ending-{self.backend_id}")
        except RuntimeError:  # the application can start no more threads
            self._bury()

    def _bury(self) -> None:
        """End workers that are not used any more, and wait for their end."""
        # One thread at a time: `close` comes back only when the last one has ended.
        with self._end_lock:
            while self._dead:
                self._dead.pop().stop()

    def _note_failure(self, worker: WorkerProcess) -> None:
        reason, output = worker.reason, worker.output()
        now, limits = time.monotonic(), self.limits
        self._num_failures += 1
        self._last_failure, self._last_failure_s = reason, worker.failed_s
        self._failures.append(now)
        # The failure just added is never older, so there is always a first one.
        while self._failures[0] < now - limits.failure_window_s:
            self._failures.popleft()
        _log.warning("the process of backend '%s' has failed: %s", self.backend_id, reason)
        if output:
            _log.info("the last that the process of '%s' wrote: %s", self.backend_id, output)
        if len(self._failures) >= limits.max_failures:
            # After the quarantine it has as many tries as at first.
            self._failures.clear()
            self._free_at = now + limits.quarantine_s
            text = "backend '%s' is in quarantine for %g s after %d failures"
            _log.warning(text, self.backend_id, limits.quarantine_s, limits.max_failures)

    def fresh(self) -> WorkerProcess:
        """A worker for the caller alone, which stops it; errors as for `worker`."""
        self._check_allowed()
        return self._start()

    def _next(self) -> WorkerProcess:
        self._check_allowed()
        starting = self._starting
        while starting is not None and starting.is_alive() and self._spare is None:
            self._hurry.set()
            # In slices: the worker is good for use before the thread has prepared all parts in it.
            starting.join(0.005)
        self._hurry.set()  # unfinished preparations of the spare end when it is needed
        with self._lock:
            worker = self._ready_spare()
        return worker or self._start()

    def _ready_spare(self) -> WorkerProcess | None:
        """The spare worker, which is none any more, if it runs."""
        worker, self._spare = self._spare, None
        if worker is None or worker.is_running:
            return worker
        self.discard(worker)
        return None

    def _check_allowed(self) -> None:
        if self._is_closed:
            raise DeadObjectError("the runtime is closed", where=self.backend_id)
        left_s = self._free_at - time.monotonic()
        if left_s > 0:
            raise DeadObjectError(
                f"the backend is in quarantine for another {left_s:.0f} s: {self._last_failure}",
                where=self.backend_id,
            )

    def _take_over(self, worker: WorkerProcess) -> None:
        self.current = worker
        self._in_force = in_force(worker.description)
        if self.limits.keep_spare:
            self._start_spare()

    def _start(self) -> WorkerProcess:
        """Start a worker; what goes wrong is a dead object, too."""
        try:
            return WorkerProcess(self._source, self.limits, self._options)
        except DeadObjectError:
            raise
        except (ArmpyError, OSError) as error:
            failure = DeadObjectError(
                f"the backend's process cannot be started again: {error}", where=self.backend_id
            )
            raise failure from error

    def _start_spare(self) -> None:
        with self._spare_lock:
            # One thread at a time: it looks for all that is missing, also what came meanwhile.
            if self._starting is None and not self._is_closed:
                self._hurry = threading.Event()
                name = f"armpy-spare-{self.backend_id}"
                # A thread that only waits is not to keep a supervisor, and with it two processes.
                run = _spare_starter(weakref.ref(self), self._hurry)
                starting = threading.Thread(target=run, name=name, daemon=True)
                try:
                    Context().run(starting.start)  # free-threaded Pythons hand the caller's on
                except RuntimeError as error:  # the application can start no more threads
                    _log.warning("no spare process of backend '%s': %s", self.backend_id, error)
                else:
                    self._starting = starting

    def make_spare(
        self,
        hurry: threading.Event,  # set when the spare worker is needed as it is
    ) -> None:
        """Start a spare worker and prepare all parts in it; what goes wrong is only logged."""
        worker = self._spare
        try:
            if (worker is None or not worker.is_running) and not self._is_closed:
                if worker is not None:
                    self.discard(worker)
                self._spare = worker = WorkerProcess(self._source, self.limits, self._options)
            while worker is not None and not hurry.is_set():
                missing = (p for p in [*self._parts] if p.number not in worker.prepared)
                if (part := next(missing, None)) is None:
                    break
                self.prepare(part, worker)
        except (ArmpyError, OSError) as error:
            is_over = self._is_closed or not threading.main_thread().is_alive()
            level = logging.DEBUG if is_over else logging.WARNING  # at the end all are ended
            # As text: a handler that keeps the record would keep the error and its frames.
            _log.log(level, "no spare process of backend '%s': %s", self.backend_id, str(error))
        if self._is_closed and worker is not None:
            worker.stop()
        with self._spare_lock:
            self._starting = None
        if hurry.is_set() and self._spare is None:  # it has been taken, and this was in its way
            self._start_spare()

    def wait_for_spare(self) -> None:
        """Wait until the spare worker has everything prepared."""
        starting = self._starting
        if starting is not None:
            starting.join()


_supervisors: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _begin_again() -> None:
    """Let a child that was forked start workers of its own."""
    for supervisor in [*_supervisors]:
        supervisor._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)

_SPARE_DELAY_S = 0.25
"""How long a spare worker is not started: one that has taken over needs the processor."""


def _spare_starter(
    reference: weakref.ref[Supervisor], hurry: threading.Event
) -> Callable[[], None]:
    def run() -> None:
        hurry.wait(_SPARE_DELAY_S)
        supervisor = reference()
        if supervisor is not None:
            supervisor.make_spare(hurry)

    return run


def in_force(description: dict[str, Any]) -> dict[str, str]:  # Any: a worker's word
    """Return a worker's report of the rights that it has given up."""
    said = description.get("in_force")
    return {str(k): str(v) for k, v in said.items()} if isinstance(said, dict) else {}
