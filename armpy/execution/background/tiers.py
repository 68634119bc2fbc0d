"""Tiers of a loaded network: what runs until all is compiled, and what takes its place then."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace
from pickle import PicklingError
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from armpy.backend import requested_tuning
from armpy.backend.preparation import postponed_compilation
from armpy.compiler.placement import LateCompilation, Placement
from armpy.compiler.validation import default_shapes
from armpy.core.dataclass import dataclass
from armpy.errors import (
    ArmpyError,
    BackendError,
    CompilationPostponedError,
    PreparationTimeoutError,
)
from armpy.execution.background.compile_process import (
    CompileOutcome,
    CompileProcess,
    CompileRequest,
    compile_turn,
    failure,
    why_not_elsewhere,
)
from armpy.execution.programs.program import BoundProgram
from armpy.execution.setup.settings import NetworkSettings
from armpy.graph import nested_graphs
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.backend import Cancellation
    from armpy.execution.programs.program import Bind, Run
    from armpy.execution.programs.staged_program import NetworkProgram, Surround
    from armpy.execution.steps.control_flow import Shapes, Targets
    from armpy.graph import Graph
    from armpy.ops.operation import Array
    from armpy.plugins.proxy.guard import BackendProxy

_ELSEWHERE = "in another process"

_log = logging.getLogger("armpy.execution")


class TieredNetwork(Protocol):
    """Loaded network that runs on other backends until all is compiled."""

    @property
    def graph(self) -> Graph:
        """Graph of the network whose programs are exchanged."""

    @property
    def backends(self) -> tuple[BackendProxy, ...]:
        """Most preferred first."""

    @property
    def is_closed(self) -> bool:
        """Return whether it has been unloaded."""

    def compiled(self, shapes: Shapes) -> BoundProgram:
        """The program for some input shapes, whatever has to be compiled for it."""

    def on(self, backends: Sequence[BackendProxy]) -> TieredNetwork:
        """The same network on these backends, most preferred first."""

    def program_for(self, shapes: Shapes) -> NetworkProgram:
        """The program for some input shapes."""

    def exchange(self, prepared: BoundProgram) -> None:
        """Let calls from now on run another program for its shapes."""


class CallCounter:
    """Number of executions that several threads begin."""

    __slots__ = ("_lock", "calls")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.calls = 0

    def counted(self, run: Run) -> Run:
        """`run`, each execution counted."""

        def run_counted(
            sources: Sequence[Array],
            results: Targets | None = None,
            cancellation: Cancellation | None = None,
            /,
        ) -> list[Array]:
            self._count()
            with fork_gate:
                return run(sources, results, cancellation)

        return run_counted

    def counted_binding(self, bind: Bind) -> Bind:
        """`bind`, with each execution counted."""

        def bind_counted(
            sources: Sequence[Array], results: Targets, /
        ) -> Callable[[], Sequence[Array] | None]:
            call = bind(sources, results)

            def call_counted() -> Sequence[Array] | None:
                self._count()
                with fork_gate:
                    return call()

            return call_counted

        return bind_counted

    def _count(self) -> None:
        """Note one more."""
        with self._lock:
            self.calls += 1


@dataclass
class _Exchange:
    """Exchange for some input shapes: the compiled program, and the one that runs until then."""

    shapes: Shapes
    backends: tuple[BackendId, ...]  # whose code it is
    is_kept: bool  # whether this process finds what another one compiles
    counter: CallCounter  # of what runs until then
    where: str = ""
    state: str = "pending"
    error: ArmpyError | None = None
    began_s: float = 0.0
    seconds: float = 0.0

    def report(self) -> LateCompilation:
        """The exchange for people."""
        is_pending = self.state == "pending"
        seconds = time.perf_counter() - self.began_s if is_pending else self.seconds
        reason = "" if self.error is None else str(self.error)
        return LateCompilation(
            self.state, self.backends, self.where, self.counter.calls, seconds, reason
        )


class Tiers:
    """Tiers of one loaded network.

    For each set of input shapes, the network is prepared while backends are asked to leave what
    they would have to compile (`armpy.backend.postpone_compilation`). If none does, there is no
    second tier. Otherwise the layers run on the other backends, and a thread has another process
    compile; then the network is prepared again from the files on disk, and its program
    takes the place of the slower one in one assignment: a call runs the one or the other to its
    end. Programs of both tiers are surrounded by the same network, with its variables.
    """

    def __init__(
        self,
        network: TieredNetwork,  # Not kept alive
        surround: Surround,  # in what every execution of the network does
        settings: NetworkSettings,
        # Returns what another process makes the same network with: something that can be pickled,
        # and called for a model that waits for compilations. Raises an `ArmpyError` where that
        # cannot be.
        again: Callable[[], object],
    ) -> None:
        self._network = weakref.ref(network)
        self._surround = surround
        self._again = again
        self._why_waiting = _why_waiting(settings)
        # A process for each of any number of shapes would cost more than it saves.
        self._most = settings.program_cache_size
        self._left_out: set[BackendId] = set()
        self._slower: TieredNetwork | None = None
        self._keeps_slower = bool([*nested_graphs(network.graph)])
        # Guards what follows; never held while the network's own lock is asked for.
        self._changed = threading.Condition()
        self._exchanges: dict[Shapes, _Exchange] = {}
        self._thread: threading.Thread | None = None
        self._process: CompileProcess | None = None
        self._is_closed = False

    def prepared(self, shapes: Shapes) -> BoundProgram:
        """The network prepared for some input shapes, on what runs now; its lock is held.

        Raises ArmpyError as while it is prepared otherwise.
        """
        network = self._network()
        assert network is not None  # it asks for the program
        reason = self._why_waiting
        if requested_tuning() is not None:
            reason = "the fastest options are to be measured"
        if len(self._exchanges) >= self._most and shapes not in self._exchanges:
            reason = f"{self._most} sets of shapes have been compiled in the background"
        if reason:
            _log.info("waiting for the compilation: %s", reason)
            return network.compiled(shapes)
        try:
            with postponed_compilation():
                return network.compiled(shapes)
        except CompilationPostponedError as error:
            postponed = error
        counter = CallCounter()
        slower = self._slower_program(network, shapes, postponed, counter)
        if slower is None:
            return network.compiled(shapes)
        backends = (*sorted(self._left_out),)
        if self._began(_Exchange(shapes, backends, postponed.is_kept, counter)):
            return slower
        return network.compiled(shapes)

    def _slower_program(
        self,
        network: TieredNetwork,
        shapes: Shapes,
        postponed: CompilationPostponedError,
        counter: CallCounter,  # of its executions
    ) -> BoundProgram | None:
        """The program on backends that need not compile; None if they do not take all layers."""
        # It ends: every turn leaves a backend out, and none comes back.
        while True:
            if postponed.backend_id not in self._left_out:
                self._left_out.add(postponed.backend_id)
                self._slower = None
            left = [other for other in network.backends if other.get_id() not in self._left_out]
            if not left:
                _log.info("waiting for the compilation: no other backend is allowed")
                return None
            try:
                with postponed_compilation():
                    maker = self._slower = self._slower or network.on(left)
                    program = maker.program_for(shapes)
                bound = self._surround(shapes, program)
                run, bind = counter.counted(bound.run), counter.counted_binding(bound.bind)
                # Its maker is kept as long as the program may be executed.
                return bound.with_runs(run, bind, maker)
            except CompilationPostponedError as error:
                postponed = error
            except ArmpyError as error:
                _log.info("waiting for the compilation, as nothing else runs it: %s", error)
                return None

    def _began(self, exchange: _Exchange) -> bool:
        """Have something compiled; whether that can be done in the background."""
        exchange.began_s = time.perf_counter()
        exchange.where = _ELSEWHERE if exchange.is_kept else "in this process"
        with self._changed:
            self._exchanges[exchange.shapes] = exchange
            try:
                self._have_thread()
            except RuntimeError as error:  # the system gives no more threads
                _log.info("waiting for the compilation: %s", error)
                del self._exchanges[exchange.shapes]
                return False
        return True

    def _have_thread(self) -> None:
        """Start a thread for pending work, if there is none: a forked process has none."""
        if self._thread is None or not self._thread.is_alive():
            name, about = "armpy compiles in the background", (weakref.ref(self),)
            self._thread = threading.Thread(target=_work, args=about, name=name, daemon=True)
            Context().run(self._thread.start)  # free-threaded Pythons hand the caller's on

    def next_pending(self) -> _Exchange | None:
        """Return the thread's next step; None if it is to end."""
        with self._changed:
            for exchange in self._exchanges.values():
                if exchange.state == "pending" and not self._is_closed:
                    return exchange
            self._thread = None
            return None

    def started(self, exchange: _Exchange) -> CompileProcess | None:
        """The process that compiles; None where this one does."""
        reason = "" if exchange.is_kept else "a program of another one cannot be taken over"
        reason = reason or why_not_elsewhere()
        network = self._network()
        if network is None or self._is_closed:
            return None
        if not reason:
            is_default = (default_shapes(network.graph) or ()) == exchange.shapes
            try:
                again: Callable[[], object] = self._again()  # type: ignore[assignment]
                shapes = None if is_default else exchange.shapes
                process = CompileProcess(CompileRequest(again, shapes, exchange.backends))
            # What cannot be handed over, and limits on processes, are no reason to fail.
            except (ArmpyError, OSError, PicklingError, TypeError, AttributeError) as error:
                reason = str(error)
        if reason:
            exchange.where = f"in this process ({reason})"
            _log.info("compiling in this process: %s", reason)
            return None
        with self._changed:
            self._process = process
            if self._is_closed:
                process.end()
        return process

    def finish(self, exchange: _Exchange, outcome: CompileOutcome | None) -> None:
        """Let the compiled program run, or compile it here, or go on without.

        An error is kept for `wait`, and shown in the log and in the placement.
        """
        network = self._network()
        with self._changed:
            self._process = None
            if network is None or self._is_closed:
                self._is_closed = True
                self._changed.notify_all()
                return
        try:
            if outcome is not None and outcome.unfit:
                exchange.where = f"in this process ({outcome.unfit})"
                _log.info("compiling in this process: %s", outcome.unfit)
            elif outcome is not None and outcome.error is not None:
                raise outcome.error
            self._exchange(network, exchange, is_on_disk=outcome is not None and not outcome.unfit)
        except ArmpyError as error:
            if not network.is_closed:
                names = ", ".join(exchange.backends)
                text = "%s could not be compiled in the background, its layers stay elsewhere: %s"
                _log.warning(text, names, error)
            self._end(exchange, "failed", error)
        except BaseException as error:
            self._end(exchange, "failed", BackendError(f"{type(error).__name__}: {error}"))
            raise  # a mistake of armpy's own, which the thread's hook shows
        else:
            self._end(exchange, "done")

    def _exchange(self, network: TieredNetwork, exchange: _Exchange, *, is_on_disk: bool) -> None:
        """Prepare the network with the compiled parts, and let calls run that."""
        prepared = None
        if is_on_disk:
            try:
                with postponed_compilation():
                    prepared = network.compiled(exchange.shapes)
            except CompilationPostponedError as error:
                exchange.where = f"in this process (another one's work is not found: {error})"
        if prepared is None:
            prepared = network.compiled(exchange.shapes)
        placed = prepared.program.placement
        if problem := failure(placed, exchange.backends):
            raise BackendError(problem)
        network.exchange(prepared)

    def _end(self, exchange: _Exchange, state: str, error: ArmpyError | None = None) -> None:
        """Note what became of an exchange."""
        with self._changed:
            exchange.seconds = time.perf_counter() - exchange.began_s
            exchange.error = error
            exchange.state = state
            is_over = all(entry.state == "done" for entry in self._exchanges.values())
            # Its memory and packed weights go with the last call and the last bound execution.
            # Control flow that these run is found through it.
            if is_over and not self._keeps_slower:
                self._slower = None
            self._changed.notify_all()

    @property
    def is_pending(self) -> bool:
        """Return whether anything is being compiled."""
        return any(entry.state == "pending" for entry in [*self._exchanges.values()])

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the compiled program runs.

        Raises PreparationTimeoutError if it takes longer, while it goes on; ArmpyError if compiling
        has failed.
        """
        self.settle(timeout_s)
        errors = [entry.error for entry in [*self._exchanges.values()] if entry.error is not None]
        if errors:
            raise errors[0]

    def settle(self, timeout_s: float | None = None) -> None:
        """`wait`, and go on as it is where compiling has failed.

        Raises PreparationTimeoutError if it takes longer; it goes on.
        """
        with self._changed:
            if self.is_pending and not self._is_closed:
                self._have_thread()
            if not self._changed.wait_for(
                lambda: self._is_closed or not self.is_pending, timeout_s
            ):
                raise PreparationTimeoutError(
                    "the network is still being compiled",
                    expected=f"its end within {timeout_s:g} s",
                    fix="Wait longer; calls are answered meanwhile",
                )

    def reported(self, placement: Placement, latest: BoundProgram) -> Placement:
        """A placement with its running or finished compilations."""
        exchange = self._exchanges.get(latest.shapes)
        if exchange is None:
            return placement
        return replace(placement, compilation=exchange.report())

    def close(self) -> None:
        """End running compilations."""
        with self._changed:
            self._is_closed = True
            if self._process is not None:
                self._process.end()
            self._changed.notify_all()
        self._slower = None


def _why_waiting(settings: NetworkSettings) -> str:
    """Why compilations have to be waited for; empty if they need not be."""
    properties, options = settings.properties, settings.optimizer
    reasons = {
        "placement by cost measures compiled code": options.is_placed_by_cost,
        "on_fallback='error' lets nothing run elsewhere": options.on_fallback == "error",
        "memory is imported for its backends": bool(
            properties.input_source or properties.output_source
        ),
        "working memory is the application's": properties.external_memory,
        "tensors are protected": settings.protected_mode,
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)


def _work(reference: weakref.ref[Tiers]) -> None:
    """Carry out pending work, without keeping the network alive for it."""
    while (tiers := reference()) is not None and (exchange := tiers.next_pending()) is not None:
        # A process is started when its turn comes: an interpreter that waits needs memory, too.
        with compile_turn():
            process = tiers.started(exchange)
            outcome = None if process is None else process.outcome()
        tiers.finish(exchange, outcome)
        del tiers, exchange


_LONGEST_WAIT_S = 10.0
"""How long a fork waits for calls to end. One of them may be what forks."""


class ForkGate:
    """Calls as a context; a fork waits until none is under way.

    OpenBLAS, with which NumPy computes matrix products, has locks that a child gets as they are: if
    a thread computes while another one forks, the next product of the child waits for ever.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._calls = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close,
                after_in_parent=self._changed.release,
                after_in_child=self._begin_anew,
            )

    def __enter__(self) -> None:
        """Begin a call, unless the process is being forked right now."""
        with self._changed:
            self._calls += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End a call."""
        with self._changed:
            self._calls -= 1
            if not self._calls:
                self._changed.notify_all()

    def _close(self) -> None:
        """Wait until no call is under way, and let none begin."""
        self._changed.acquire()
        if not self._changed.wait_for(lambda: not self._calls, _LONGEST_WAIT_S):
            text = "forking while %d calls run on CpuRef: the child may hang in their products"
            _log.warning(text, self._calls)

    def _begin_anew(self) -> None:
        """Forget the calls of threads that the child does not have."""
        self._calls = 0
        self._changed.release()


fork_gate = ForkGate()
"""That of the process, for programs that run until all is compiled."""
