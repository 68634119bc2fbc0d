"""Spread of a network's executions over several backends, by measured speed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from armpy.backend import Cancellation
from armpy.errors import ArmpyError, InvalidArgumentError, MemoryLimitError
from armpy.execution.background.tiers import TieredNetwork
from armpy.execution.error_attribution import FAILURES
from armpy.execution.programs.program import BoundProgram
from armpy.execution.programs.staged_program import NetworkProgram
from armpy.execution.properties import NetworkProperties
from armpy.execution.steps.control_flow import Shapes, Targets
from armpy.ops.operation import Array
from armpy.types import BackendId

_FAILURES = (*FAILURES, MemoryLimitError)
"""Errors after which a backend gets no more executions."""

_SHARE_OF_NEWEST = 0.25
"""Weight of the newest execution in the mean time of a backend."""

AnswerT = TypeVar("AnswerT")

_log = logging.getLogger("armpy.execution")


class SpreadBackend:
    """Backend that runs a whole network, and how fast it has been.

    Attributes
    ----------
    executions : int
        How many executions it has answered.
    error : ArmpyError or None
        Why it gets no more executions.
    """

    def __init__(self, backend_id: BackendId, network: Any) -> None:
        self.backend_id = backend_id
        self.network = network  # Any: a LoadedNetwork, whose module imports this one
        self.executions = 0
        self.error: ArmpyError | None = None
        self.num_running = 0
        # By input shapes: mean seconds of one execution, with others at the same time.
        self.seconds: dict[Shapes, float] = {}

    def expected_s(self, shapes: Shapes) -> float:
        """Return when one more execution is expected to end; 0 for shapes that are new."""
        return self.seconds.get(shapes, 0.0) * (self.num_running + 1)


class Spread:
    """Backends of one network that executions are spread over.

    Parameters
    ----------
    network : LoadedNetwork
        Not kept alive.

    Attributes
    ----------
    backends : list of SpreadBackend

    Raises
    ------
    InvalidArgumentError
        If the network has variables, which each backend would have for itself.
    ArmpyError
        If no backend can prepare the network.

    Notes
    -----
    Each backend has a network of its own, in which the other backends take the layers that it
    lacks. An execution goes to the backend with the least product of mean time and executions under
    way. Backends that are new to some shapes come first, so that all are measured. A backend that
    fails is left out from then on, and its execution is made again by another one.
    """

    def __init__(self, network: TieredNetwork, properties: NetworkProperties) -> None:
        obstacles = {
            "variables, which each backend would have for itself": network.graph.variables,
            "imported inputs": properties.input_source,
            "imported outputs": properties.output_source,
            "working memory of the application": properties.external_memory,
        }
        reasons = [name for name, is_there in obstacles.items() if is_there]
        if reasons:
            raise InvalidArgumentError(
                "the network's executions cannot be spread over backends",
                where="spread",
                actual=f"it has {', '.join(reasons)}",
                fix="Leave spread out",
            )
        self._lock = threading.Lock()
        self.backends: list[SpreadBackend] = []
        errors: list[ArmpyError] = []
        for backend in network.backends:
            others = [other for other in network.backends if other is not backend]
            try:
                own = network.on([backend, *others])
            except ArmpyError as error:
                _log.warning("no executions go to %s: %s", backend.get_id(), error)
                errors.append(error)
            else:
                self.backends.append(SpreadBackend(backend.get_id(), own))
        if not self.backends:
            raise errors[0]

    @property
    def networks(self) -> list[Any]:  # Any: as of `SpreadBackend`
        """The networks on one preferred backend each."""
        return [backend.network for backend in self.backends]

    def prepared(self, network: TieredNetwork, shapes: Shapes) -> BoundProgram:
        """Return a program that runs on any of the backends.

        Parameters
        ----------
        network : LoadedNetwork
        shapes : tuple of tuple of int

        Raises
        ------
        ArmpyError
            If no backend can prepare the network for these shapes.
        """
        programs: dict[SpreadBackend, BoundProgram] = {}
        errors: list[ArmpyError] = []
        for backend in self.backends:
            if backend.error is not None:
                continue
            try:
                plan = backend.network.plan(shapes)
            except ArmpyError as error:
                _log.warning("no executions go to %s: %s", backend.backend_id, error)
                errors.append(error)
                continue
            programs[backend] = network.surrounded(shapes, plan)
        if not programs:
            raise errors[0] if errors else self._all_failed()
        return SpreadProgram(self, programs)

    @contextmanager
    def execution(
        self, shapes: Shapes, backends: Sequence[SpreadBackend]
    ) -> Iterator[SpreadBackend]:
        """Choose a backend for an execution, and measure it; a failure leaves the backend out.

        Raises
        ------
        ArmpyError
            The error of the backend that failed last, if none is left.
        """
        with self._lock:
            usable = [backend for backend in backends if backend.error is None]
            if not usable:
                raise self._all_failed()
            chosen = min(usable, key=lambda backend: backend.expected_s(shapes))
            chosen.num_running += 1
            num_running = chosen.num_running
        began_s = time.perf_counter()
        try:
            yield chosen
        except _FAILURES as error:
            with self._lock:
                chosen.num_running -= 1
                is_news = chosen.error is None
                chosen.error = error
            if is_news:
                _log.warning("%s failed and gets no more executions: %s", chosen.backend_id, error)
            raise
        except BaseException:
            with self._lock:
                chosen.num_running -= 1
            raise
        # Executions at the same time share the backend: each has taken its part of the time.
        seconds = (time.perf_counter() - began_s) / num_running
        with self._lock:
            chosen.num_running -= 1
            chosen.executions += 1
            known = chosen.seconds.get(shapes)
            if known is not None:
                seconds = known + (seconds - known) * _SHARE_OF_NEWEST
            chosen.seconds[shapes] = seconds

    def _all_failed(self) -> ArmpyError:
        """The error of an execution that no backend is left for."""
        return next(member.error for member in reversed(self.backends) if member.error is not None)


class SpreadProgram(BoundProgram):
    """A network's programs on several backends, each of which can make an execution."""

    __slots__ = ("_programs", "_spread")

    def __init__(self, spread: Spread, programs: dict[SpreadBackend, BoundProgram]) -> None:
        self._spread = spread
        self._programs = programs
        first_backend, first = next(iter(programs.items()))
        super().__init__(
            first.shapes,
            first.plan,
            self._run,
            self._bind,
            all(program.stops_in_place for program in programs.values()),
            first.inputs,
            first.outputs,
        )
        self.maker = first_backend.network

    @property
    def other_plans(self) -> dict[BackendId, NetworkProgram]:
        """The plans of the other backends than the one whose plan is `plan`."""
        pairs = [*self._programs.items()][1:]
        return {backend.backend_id: program.plan for backend, program in pairs}

    def _run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
        /,
    ) -> list[Array]:
        def run(backend: SpreadBackend) -> list[Array]:
            # A copy for each attempt, as an execution puts new arrays where there are none.
            targets = None if results is None else [*results]
            answer = self._programs[backend].run(sources, targets, cancellation)
            if results is not None:
                results[:] = targets or ()
            return answer

        return self._executed(run)

    def _bind(
        self, sources: Sequence[Array], results: Targets, /
    ) -> Callable[[], Sequence[Array] | None]:
        calls: dict[SpreadBackend, Callable[[], Sequence[Array] | None]] = {}

        def run(backend: SpreadBackend) -> Sequence[Array] | None:
            if backend not in calls:
                calls[backend] = self._programs[backend].bind(sources, [*results])
            return calls[backend]()

        return lambda: self._executed(run)

    def _executed(self, run: Callable[[SpreadBackend], AnswerT]) -> AnswerT:
        """Execute on one backend after the other until one answers."""
        while True:
            try:
                with self._spread.execution(self.shapes, [*self._programs]) as backend:
                    return run(backend)
            except _FAILURES:
                if all(backend.error is not None for backend in self._programs):
                    raise
