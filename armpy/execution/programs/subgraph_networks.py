"""Networks of subgraphs: what a loaded network shares with those that its control flow runs."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from armpy.backend import Capability, ReasonCode, Support, has_matching_capability
from armpy.compiler import Evaluator, Placement
from armpy.compiler.assign import Exclusions
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, CompilationPostponedError, InvalidArgumentError
from armpy.execution.memory.allocators import UnseenAllocator
from armpy.execution.setup.settings import NetworkSettings
from armpy.execution.steps.control_flow import InnerNetwork, InnerProgram, Shapes
from armpy.execution.steps.host_workloads import host_session
from armpy.execution.steps.session import BackendSession, SessionError, Sessions, open_session
from armpy.graph import Graph, graphs_of
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import failed_support
from armpy.profiling import WatchedLock, phase
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")

# Each takes some 2 ms, and of a tree of branches a run takes one path.
MOST_AHEAD = 128
"""Graphs that are prepared before they run: of many that lie in each other, few do run."""


NetworkT = TypeVar("NetworkT", bound=InnerNetwork)


class SubgraphNetworks(Generic[NetworkT]):
    """Backends, their sessions, and one loaded network per graph that control flow runs."""

    def __init__(
        self,
        backends: Sequence[BackendProxy],  # most preferred first
        evaluator: Evaluator | None,  # folds constants
        settings: NetworkSettings,
        # Makes the loaded network of an inner graph.
        load: Callable[[Graph, SubgraphNetworks[NetworkT]], NetworkT],
    ) -> None:
        self.backends = tuple(backends)
        self.evaluator = evaluator
        self.settings = settings
        self.may_run_loops = any(
            has_matching_capability(Capability.LOOP_TIMEOUT, True, backend.get_capabilities())
            for backend in self.backends
        )
        # Reentrant, as making a program of a graph makes those of the graphs inside it.
        lock = threading.RLock()
        # Held while any of the networks makes a program.
        self.lock = lock if settings.profiler is None else WatchedLock(lock, "the programs")
        # What control flow calls the graphs that it runs, if the network is profiled.
        self.graph_names: weakref.WeakKeyDictionary[Graph, str] = weakref.WeakKeyDictionary()
        self._load = load
        # Programs hold the graphs that they run, and there are as many as the caller's shapes.
        self._networks: weakref.WeakKeyDictionary[Graph, NetworkT] = weakref.WeakKeyDictionary()
        self._waiting: deque[tuple[Graph, Shapes]] = deque()
        self._is_preparing = False
        self._num_ahead = 0
        # A proxy, as this holds the session.
        self._host = host_session(weakref.proxy(self))
        by_id = {backend.get_id(): backend for backend in self.backends}
        # By backend id, the core's own included. A backend makes what a network needs when it first
        # gets a layer of it.
        self.sessions = Sessions(self._host, partial(_open_session, by_id, settings))
        self._refusals: dict[BackendId, Support] = {}

    def refuse(self, error: SessionError) -> None:
        """Give no layers to a backend that could not make its objects."""
        self._refusals[error.backend_id] = error.answer

    def fail(self, backend_id: BackendId, error: ArmpyError) -> bool:
        """Give no layers to a backend that has failed to execute one; whether that is news."""
        if backend_id in self._refusals:
            return False
        self._refusals[backend_id] = failed_support(
            ReasonCode.EXECUTION, f"execution failed: {error}", error
        )
        return True

    @contextmanager
    def without_backend(
        self,
        # The network that ran; its programs and those of inner networks are made anew.
        network: NetworkT,
        backend_id: BackendId,
        # The backend's error. If no other backend takes its layers, it gets them back.
        error: ArmpyError,
    ) -> Iterator[None]:
        """Exclude a backend that has failed while programs are made that need other backends."""
        # Of several executions that fail at the same time, one makes the programs anew for all.
        is_first = self.fail(backend_id, error)
        if is_first:
            for owner in (network, *self.networks):
                owner.forget_programs()
        try:
            yield
        except BaseException:
            if is_first:
                self._refusals.pop(backend_id, None)
            raise
        if is_first:
            text = "%s has failed and loses its layers, which are executed again: %s"
            _log.warning(text, backend_id, error)

    def excluded(self, graph: Graph) -> Exclusions:
        """The layers of a graph that backends without a session do not get."""
        return {
            (layer.id, backend_id): answer
            for backend_id, answer in self._refusals.items()
            for layer in graph.layers
        }

    def name_graphs(self, graph: Graph) -> None:
        """Store the names that a graph's layers give to the graphs they run, for profiles."""
        if self.settings.profiler is not None:
            for layer in graph.layers:
                self.graph_names.update({inner: n for n, inner in graphs_of(layer.operation)})

    def find(self, graph: Graph) -> NetworkT | None:
        """The loaded network of a graph, if there is one yet."""
        return self._networks.get(graph)

    def within(self, program: InnerProgram) -> Iterator[tuple[str, NetworkT]]:
        """The loaded networks that a program's control flow runs, each once, with its place."""
        return self._within(program, "", set())

    def _within(
        self, program: InnerProgram, place: str, seen: set[Graph]
    ) -> Iterator[tuple[str, NetworkT]]:
        """`within`, without the graphs that have been seen."""
        for layer in program.layers:
            for name, graph in graphs_of(layer.operation):
                inner = self.find(graph)
                if inner is not None and graph not in seen:
                    seen.add(graph)
                    inner_place = f"{place}{layer.name}/{name}"
                    yield inner_place, inner
                    if inner.latest_program is not None:
                        yield from self._within(inner.latest_program, f"{inner_place}/", seen)

    def placement(self, program: InnerProgram) -> Placement:
        """The report of a program, with each graph that its control flow runs and has prepared."""
        report = program.placement
        for place, inner in self.within(program):
            if inner.latest_program is not None:
                report = report.followed_by(inner.latest_program.placement.inside(place))
        return report

    @property
    def networks(self) -> tuple[NetworkT, ...]:
        """The loaded networks of all graphs that control flow runs."""
        return tuple(self._networks.values())

    def network_of(self, graph: Graph) -> NetworkT:
        """Return the network of a graph, which is loaded if need be."""
        with self.lock:
            network = self._networks.get(graph)
            if network is None:
                network = self._networks[graph] = self._load(graph, self)
            return network

    def prepare(self, graph: Graph, shapes: Shapes) -> None:
        """Prepare a graph, after those that wait already; errors are raised when it runs.

        Preparing a graph asks for those inside it. They wait for it, so that graphs which lie
        deep in each other do not need a deep stack. After the first `MOST_AHEAD`, a graph is
        prepared when it first runs.
        """
        with self.lock:
            if self._num_ahead == MOST_AHEAD:
                return
            self._num_ahead += 1
            self._waiting.append((graph, shapes))
            if self._is_preparing:
                return
            self._is_preparing = True
            try:
                while self._waiting:
                    self._prepare_next()
            finally:
                self._is_preparing = False
                # The rest, as after Ctrl-C, is prepared when it first runs.
                self._waiting.clear()

    def _prepare_next(self) -> None:
        graph, shapes = self._waiting.popleft()
        try:
            self.network_of(graph).program_for(shapes)
        except CompilationPostponedError:
            raise  # which is for the whole network, before it runs
        except ArmpyError as error:
            # Only logged, as it may never run; if it does, it is prepared again and raises.
            _log.info("%s is not prepared for %s: %s", graph, shapes, error)

    def close(self) -> None:
        """Forget inner networks and sessions, which go with the last execution under way."""
        with self.lock:
            for network in self.networks:
                network.forget_programs()
            self._networks.clear()
            # Executions under way have the old ones through their programs.
            self.sessions = Sessions(self._host, _refuse_session)


def _refuse_session(backend_id: BackendId) -> BackendSession:
    """Make nothing any more."""
    raise InvalidArgumentError("the network has been unloaded", fix="Load it again")


def _open_session(
    backends: Mapping[BackendId, BackendProxy], settings: NetworkSettings, backend_id: BackendId
) -> BackendSession:
    """Let a backend make its objects for a network."""
    try:
        with phase("open session", backend_id):
            session = open_session(
                backends[backend_id],
                settings.optimizer.model_options.get(backend_id),
                settings.allocators.get(backend_id),
                settings.profiler,
                settings.properties.input_source,
                settings.properties.output_source,
                relaxed=settings.optimizer.request_for(backends[backend_id]).relaxed,
            )
            if settings.protected_mode:
                return replace(session, allocator=UnseenAllocator())
            return session
    except ArmpyError as error:
        _log.warning("%s; its layers fall back", error, exc_info=wants_traceback(_log))
        raise SessionError(backend_id, error) from error
