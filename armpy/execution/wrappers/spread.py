"""Spread of a network's executions, or of their rows, over backends, by measured speed."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

from numpy import empty

from armpy.backend import Cancellation
from armpy.errors import (
    ArmpyError,
    CompilationPostponedError,
    InvalidArgumentError,
    MemoryLimitError,
)
from armpy.execution.background.tiers import TieredNetwork
from armpy.execution.programs.program import BoundProgram
from armpy.execution.programs.staged_program import Surround
from armpy.execution.setup.properties import NetworkProperties
from armpy.execution.steps.control_flow import Shapes, Targets
from armpy.ops.operation import Array
from armpy.plugins.proxy.error_attribution import FAILURES
from armpy.tensor import TensorInfo
from armpy.types import BackendId

_FAILURES = (*FAILURES, MemoryLimitError)
"""Errors after which a backend gets no more executions."""

_SHARE_OF_NEWEST = 0.25
"""Weight of the newest execution in the mean time of a backend."""

_REST = 50
"""How many times its mean time a backend gets no execution before it is measured again."""

_WORTH = 8
"""How many times as long as on the best one an execution may take to measure a backend again."""

_LEAST_GAIN_S = 5e-4
"""Least time that dividing an execution saves; threads and slices cost a part of it."""

AnswerT = TypeVar("AnswerT")
Part: TypeAlias = "tuple[SpreadBackend, slice, BoundProgram]"

_log = logging.getLogger("armpy.execution")


class SpreadBackend:
    """Backend that runs a whole network, and how fast it has been."""

    def __init__(self, backend_id: BackendId) -> None:
        self.backend_id = backend_id
        # None before the first program. Any: a LoadedNetwork, whose module imports this one.
        self.network: Any = None
        self.executions = 0  # that it has answered
        self.error: ArmpyError | None = None  # why it gets no more executions
        self.num_running = 0
        self.ended_s = 0.0
        # By input shapes: mean seconds of one execution, with others at the same time. None after
        # the first one, which takes several times as long as the others.
        self.seconds: dict[Shapes, float | None] = {}

    def rank(self, shapes: Shapes) -> tuple[float, int]:
        """Sort key of backends for one more execution; new ones come first, and take turns."""
        return self.expected_s(shapes), self.executions + self.num_running

    def expected_s(self, shapes: Shapes) -> float:
        """Return when one more execution is expected to end; 0 for shapes that are new."""
        return (self.seconds.get(shapes) or 0.0) * (self.num_running + 1)

    def is_due(self, shapes: Shapes, best_s: float) -> bool:
        """Return whether to measure it again: other programs may have slowed it down then."""
        seconds, idle_s = self.seconds.get(shapes) or 0.0, time.perf_counter() - self.ended_s
        return not self.num_running and _REST * seconds < idle_s and seconds < _WORTH * best_s


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
        If the network has variables, which each backend would have for itself; if rows are to be
        divided, and an input or output has no open first dimension.

    Notes
    -----
    Each backend has a network of its own, made for the first program, in which the other backends
    take the layers that it lacks. An execution goes to the backend with the least product of mean
    time and executions under way. Backends that are new to some shapes come first, so that all are
    measured; one that rests is measured again. A backend that fails is left out from then on, and
    its execution is made again by another one.

    With `divides_rows`, an execution that comes alone is divided: each backend computes as many
    rows as its measured time allows.
    """

    def __init__(
        self, network: TieredNetwork, properties: NetworkProperties, *, divides_rows: bool
    ) -> None:
        graph = network.graph
        outputs = zip(graph.output_names, graph.outputs, strict=True)
        values = (*((value.name, value) for value in graph.inputs), *outputs)
        shapes = {name: value.info.shape for name, value in values if divides_rows}
        fixed = [n for n, shape in shapes.items() if shape is not None and shape[:1] != (None,)]
        obstacles = {
            f"no open first dimension of {', '.join(fixed)} to divide": fixed,
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
                actual=f"a network with {', '.join(reasons)}",
                fix="Leave spread out",
            )
        self._network = weakref.ref(network)
        self._lock = threading.Lock()
        self._divides_rows = divides_rows
        self.backends = [SpreadBackend(backend.get_id()) for backend in network.backends]

    @property
    def networks(self) -> list[Any]:  # Any: as of `SpreadBackend`
        """The networks on one preferred backend each, as far as they have been made."""
        return [backend.network for backend in self.backends if backend.network is not None]

    def prepared(self, surround: Surround, shapes: Shapes) -> BoundProgram:
        """Return a program that runs on any of the backends, surrounded by what calls do.

        Raises CompilationPostponedError if a backend has postponed compiling
        (`armpy.backend.postpone_compilation`); ArmpyError if no backend can prepare the network for
        these shapes.
        """
        network = self._network()
        assert network is not None  # it asks for the program, or one under other names does
        programs: dict[SpreadBackend, BoundProgram] = {}
        errors: list[ArmpyError] = []
        # A network under other names has the same programs, so that any of them makes them for all.
        for preferred, backend in zip(network.backends, self.backends, strict=True):
            if backend.error is not None:
                continue
            try:
                if backend.network is None:
                    others = [other for other in network.backends if other is not preferred]
                    backend.network = network.on([preferred, *others])
                program = backend.network.program_for(shapes)
            except CompilationPostponedError:
                raise
            except ArmpyError as error:
                _log.warning("no executions go to %s: %s", backend.backend_id, error)
                errors.append(error)
                continue
            programs[backend] = surround(shapes, program)
        if not programs:
            raise errors[0] if errors else self._all_failed()
        runs = SpreadRuns(self, programs, surround)
        (first_backend, first), *rest = programs.items()
        bound = first.with_runs(runs.run, runs.bind, first_backend.network)
        bound.stops_in_place = all(each.stops_in_place for each in programs.values())
        bound.others = {other.backend_id: each.program for other, each in rest}
        return bound

    def shares(
        self, shapes: Shapes, backends: Sequence[SpreadBackend]
    ) -> list[tuple[SpreadBackend, slice]]:
        """Divide the rows of an execution by measured speed; empty if one backend is to run it."""
        num_rows = {shape[0] for shape in shapes} if self._divides_rows else set()
        with self._lock:
            usable = [backend for backend in backends if backend.error is None]
            seconds = [backend.seconds.get(shapes) or 0.0 for backend in usable]
            # Executions at the same time use all backends as they are.
            is_busy = any(backend.num_running for backend in usable)
        if is_busy or len(num_rows) != 1 or not all(seconds):
            return []
        speeds = [*accumulate(1 / one for one in seconds)]
        if min(seconds) - 1 / speeds[-1] < _LEAST_GAIN_S:
            return []
        ends = [round(max(num_rows) * speed / speeds[-1]) for speed in speeds]
        shares = zip(usable, map(slice, [0, *ends], ends), strict=False)
        return [(backend, rows) for backend, rows in shares if rows.start < rows.stop]

    @contextmanager
    def execution(
        self, shapes: Shapes, backends: Sequence[SpreadBackend]
    ) -> Iterator[SpreadBackend]:
        """Choose a backend for an execution, and measure it; a failure leaves the backend out.

        Raises ArmpyError (the error of the backend that failed last, if none is left).
        """
        with self._lock:
            usable = [backend for backend in backends if backend.error is None]
            if not usable:
                raise self._all_failed()
            chosen = min(usable, key=lambda backend: backend.rank(shapes))
            best_s = chosen.expected_s(shapes)
            chosen = next((other for other in usable if other.is_due(shapes, best_s)), chosen)
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
        ended_s = time.perf_counter()
        seconds = (ended_s - began_s) / num_running
        with self._lock:
            chosen.num_running -= 1
            chosen.executions += 1
            chosen.ended_s = ended_s
            known = chosen.seconds.get(shapes)
            if known is not None:  # the process may have been stopped for any time
                seconds = known + (min(seconds, 2 * known) - known) * _SHARE_OF_NEWEST
            chosen.seconds[shapes] = seconds if shapes in chosen.seconds else None

    def _all_failed(self) -> ArmpyError:
        """The error of an execution that no backend is left for."""
        return next(member.error for member in reversed(self.backends) if member.error is not None)


class SpreadRuns:
    """Executions of a network's programs on several backends, any of which can make each."""

    def __init__(
        self, spread: Spread, programs: dict[SpreadBackend, BoundProgram], surround: Surround
    ) -> None:
        self._spread = spread
        self._programs = programs
        self._surround = surround
        self._lock = threading.Lock()
        self._parts: dict[tuple[SpreadBackend, ...], list[Part]] = {}
        first = next(iter(programs.values()))
        self._shapes = first.shapes
        self._result_infos: tuple[TensorInfo, ...] = first.program.result_infos

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
        /,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StepProgram.run`."""
        if parts := self._divided():
            try:
                return self._run_parts(parts, sources, results, cancellation)
            except _FAILURES as error:
                _log.debug("all rows are computed again, by a backend that is left: %s", error)

        def run(backend: SpreadBackend) -> list[Array]:
            # A copy for each attempt, as an execution puts new arrays where there are none.
            targets = None if results is None else [*results]
            answer = self._programs[backend].run(sources, targets, cancellation)
            if results is not None:
                results[:] = targets or ()
            return answer

        return self._executed(run)

    def _divided(self) -> list[Part]:
        """Parts of an execution that run at the same time; empty if one backend is to run it."""
        infos = self._result_infos
        # Where shapes follow from elements, nothing is known of the rows of results.
        num_rows = self._shapes[0][:1]
        is_known = all(i.is_fully_shaped and i.known_shape[:1] == num_rows for i in infos)
        shares = self._spread.shares(self._shapes, [*self._programs]) if is_known else []
        key = tuple(backend for backend, _ in shares)
        with self._lock:
            # Kept, as parts of other sizes would be prepared anew.
            if key not in self._parts:
                self._parts[key] = []
                try:
                    for backend, rows in shares:
                        shapes = tuple((rows.stop - rows.start, *s[1:]) for s in self._shapes)
                        program = self._surround(shapes, backend.network.program_for(shapes))
                        self._parts[key].append((backend, rows, program))
                except ArmpyError as error:
                    self._parts[key] = []
                    _log.warning("rows are not divided: %s", error)
            return self._parts[key]

    def _run_parts(
        self,
        parts: Sequence[Part],
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None,
    ) -> list[Array]:
        """Execute all parts at the same time, into slices of the results."""
        infos = self._result_infos
        outputs = [
            empty(info.known_shape, info.data_type.dtype) if target is None else target
            for info, target in zip(infos, results or [None] * len(infos), strict=True)
        ]

        def run(backend: SpreadBackend, rows: slice, program: BoundProgram) -> None:
            targets: Targets = [output[rows] for output in outputs]
            with self._spread.execution(program.shapes, [backend]):
                program.run([source[rows] for source in sources], targets, cancellation)

        with futures.ThreadPoolExecutor(len(parts)) as pool:
            calls = [pool.submit(partial(copy_context().run, run, *part)) for part in parts]
        for call in calls:
            call.result()
        if results is not None:
            results[:] = outputs
        return outputs

    def bind(
        self, sources: Sequence[Array], results: Targets, /
    ) -> Callable[[], Sequence[Array] | None]:
        """Prepare many executions with the same arrays, on each backend when it gets the first."""
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
                with self._spread.execution(self._shapes, [*self._programs]) as backend:
                    return run(backend)
            except _FAILURES:
                if all(backend.error is not None for backend in self._programs):
                    raise
