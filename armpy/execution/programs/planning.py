"""Planning: lets backends prepare a graph; what one of them cannot do moves to the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from armpy.backend import CacheUse, ReasonCode
from armpy.backend.caches import gathered_cache_uses, model_named
from armpy.backend.control_flow import network_timeout
from armpy.compiler import OptimizedNetwork, optimize_graph, place_layers
from armpy.compiler.assign import Exclusions
from armpy.compiler.compile_timeout import time_per_part
from armpy.compiler.compiled_parts import given_parts
from armpy.compiler.imported import import_tensors
from armpy.compiler.memory.memory_copies import ImportRefusals
from armpy.compiler.optimize import simplified
from armpy.core.system_trace import has_marks
from armpy.core.vlog import is_on, vlog, wants_traceback
from armpy.errors import BackendError, MemoryQuotaError
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.imports import shapes_depend_on_values
from armpy.execution.programs.memory_limits import check_layers
from armpy.execution.programs.placement_policy import decide
from armpy.execution.programs.resources import ImportRefusedError
from armpy.execution.programs.staged_program import DynamicLayers, StagedProgram
from armpy.execution.programs.subgraph_networks import SubgraphNetworks
from armpy.execution.steps.profiled import logged_steps, measure_for, traced_steps
from armpy.execution.steps.session import HandleFactories, SessionError
from armpy.execution.steps.step import PreparationError, PreparationFailure
from armpy.graph import Graph, graphs_of
from armpy.ops.operation import Array, located
from armpy.plugins.proxy.guarded_call import failed_support
from armpy.types import HOST, BackendId, DeviceType

if TYPE_CHECKING:
    from armpy.execution.programs.staged_program import NetworkProgram

_log = logging.getLogger("armpy.execution")

_PROCESSORS = (DeviceType.CPU_COMPILED, DeviceType.CPU_REFERENCE)
"""Whose layers are reported as executed by a processor."""

AnyProgram = TypeVar("AnyProgram", CompiledProgram, DynamicLayers)


class Planner:
    """Makes the programs of graphs for a network and those of its subgraphs."""

    def __init__(
        self,
        subgraphs: SubgraphNetworks[Any],  # Any: whichever networks, none of which is asked here
        name: str = "",  # that control flow gives to the graph; empty for the outermost one
        # By layer id, of an optimised network, which has been through the optimiser's passes.
        wanted: Mapping[int, BackendId] | None = None,
    ) -> None:
        self._subgraphs = subgraphs
        self._wanted = wanted
        self._settings = subgraphs.settings
        self._measure = measure_for(subgraphs.settings.profiler, name)
        if is_on.cpuexe:
            types = {backend.get_id(): backend.device.device_type for backend in subgraphs.backends}
            on_host = {HOST, *(name for name, kind in types.items() if kind in _PROCESSORS)}
            self._measure = logged_steps(self._measure, on_host)
        if has_marks():
            self._measure = traced_steps(self._measure)

    def program(self, graph: Graph) -> CompiledProgram:
        """Optimise and prepare."""
        sessions, backends = self._subgraphs.sessions, self._subgraphs.backends
        executors, options = self._settings.executors, self._settings.optimizer
        # Kept over all turns of `_prepared`: a refused import becomes a copy the next time.
        refused: ImportRefusals = {}
        decision = None
        # An optimised network has been through the passes, and its assignment names its layers.
        if self._wanted is None:
            graph = simplified(graph, backends, options)
        check_layers(graph, self._settings.memory_limit_bytes)
        if self._wanted is None:
            excluded = self._subgraphs.excluded(graph)
            decision = decide(graph, backends, self._settings, excluded)
        optimize = partial(
            optimize_graph,
            graph,
            backends,
            options,
            factories=HandleFactories(sessions),
            refused_imports=refused,
            wanted=self._wanted,
            decision=decision,
        )

        def make(network: OptimizedNetwork) -> CompiledProgram:
            self._check_memory(network)
            try:
                return CompiledProgram.prepare(network, sessions, executors, self._measure)
            except ImportRefusedError as error:
                refused[error.key] = error.answer
                raise

        return self._prepared(graph, optimize, make)

    @property
    def watches_steps(self) -> bool:
        """Return whether steps are measured, or prepared within a time limit."""
        limit_s = self._settings.optimizer.preparation_timeout_s
        return self._measure is not None or limit_s is not None

    def resized_program(self, network: OptimizedNetwork) -> CompiledProgram:
        """Prepare a network that is optimised already, as `Traces` makes it.

        Raises PreparationError if a backend fails.
        """
        sessions, executors = self._subgraphs.sessions, self._settings.executors

        def make(resized: OptimizedNetwork) -> CompiledProgram:
            return CompiledProgram.prepare(resized, sessions, executors, self._measure)

        return self._made(network, make)

    def importing_program(
        self,
        program: NetworkProgram,  # for a call with arrays
        inputs: Sequence[Array | ImportedTensor],
        targets: Sequence[Array | ImportedTensor | None],
    ) -> CompiledProgram:
        """The program for calls with tensors imported as these are.

        Raises MemoryImportError if the network's shapes depend on values; ArmpyError if a backend
        cannot make the program's objects.
        """
        if isinstance(program, StagedProgram):
            raise shapes_depend_on_values()
        sessions = self._subgraphs.sessions
        network = import_tensors(
            program.network,
            HandleFactories(sessions),
            {
                i: tensor.factories
                for i, tensor in enumerate(inputs)
                if isinstance(tensor, ImportedTensor)
            },
            {
                i: next(iter(tensor.factories.items()))
                for i, tensor in enumerate(targets)
                if isinstance(tensor, ImportedTensor)
            },
            self._settings.optimizer.memory_strategies,
        )
        try:
            executors, known = self._settings.executors, program.steps
            return CompiledProgram.prepare(network, sessions, executors, self._measure, known)
        except PreparationError as error:
            cause = error.failures[0].cause
            raise cause from cause.__cause__
        except ImportRefusedError as error:
            raise error.cause from error.cause.__cause__

    def dynamic_layers(self, graph: Graph) -> DynamicLayers:
        """Place and prepare layers whose output shapes only their workloads can compute."""
        sessions, limit = self._subgraphs.sessions, self._settings.memory_limit_bytes
        options, executors = self._settings.optimizer, self._settings.executors
        return self._prepared(
            graph,
            partial(place_layers, graph, self._subgraphs.backends, options),
            lambda network: DynamicLayers(network, sessions, limit, executors, self._measure),
        )

    def _prepared(
        self,
        graph: Graph,
        optimize: Callable[..., OptimizedNetwork],  # takes `excluded`
        make: Callable[[OptimizedNetwork], AnyProgram],
    ) -> AnyProgram:
        """Make a program; a backend that fails at a layer loses it to the next one.

        What fails for these shapes is no reason to leave the backend out for others.
        """
        excluded = self._subgraphs.excluded(graph)
        # It ends: every turn takes a layer, a backend or an import away, and none comes back.
        while True:
            try:
                with model_named(self._settings.name), given_parts(self._settings.saved):
                    network = optimize(excluded=excluded)
                self._subgraphs.name_graphs(network.graph)
                program = self._made(network, make)
            except SessionError as error:
                self._subgraphs.refuse(error)
                excluded.update(self._subgraphs.excluded(graph))
                continue
            except PreparationError as error:
                for failure in error.failures:
                    self._exclude(network, failure, excluded)
                continue
            except ImportRefusedError as error:
                _log.warning("%s; the tensor is copied", error)
                continue
            _log.info("%s", program.placement)
            if is_on.compilation:
                vlog("compilation", "%s", program.placement)
            return program

    def _made(
        self, network: OptimizedNetwork, make: Callable[[OptimizedNetwork], AnyProgram]
    ) -> AnyProgram:
        """Let backends make the programs, and report those found in caches."""
        timeout_s = self._settings.optimizer.preparation_timeout_s
        uses: list[CacheUse]
        with (
            network_timeout(self._settings.loop_timeout_s),
            time_per_part(timeout_s),
            gathered_cache_uses() as uses,
            model_named(self._settings.name),
        ):
            program = make(network)
        if uses:
            every = (*network.placement.cache_uses, *uses)
            placement = replace(network.placement, cache_uses=every)
            program.network = replace(network, placement=placement)
        return program

    def _check_memory(self, network: OptimizedNetwork) -> None:
        """Check what one execution needs against the limit, before anything is allocated."""
        results = sum(value.info.size_bytes for value in network.graph.results)
        needed = network.placement.peak_bytes + results
        if needed > self._settings.memory_limit_bytes:
            raise MemoryQuotaError(
                "one execution of the network needs too much memory",
                expected=f"at most {self._settings.memory_limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{needed} bytes",
            )

    def _exclude(
        self, network: OptimizedNetwork, failure: PreparationFailure, excluded: Exclusions
    ) -> None:
        """Add layers that a backend could not prepare to those that it is not asked for again.

        Raises ArmpyError if the backend is the last one and raised it itself: no other one can be
        asked.
        """
        cause = failure.cause
        # Control flow that no backend takes is the core's own, after all backends.
        is_control_flow = bool(graphs_of(failure.layers[0].operation))
        last_id = HOST if is_control_flow else self._subgraphs.backends[-1].get_id()
        is_last = failure.backend_id == last_id
        if is_last and not isinstance(cause, BackendError):
            cause.where = cause.where.removeprefix(f"{failure.backend_id} / ")
            raise located(lambda: f"{failure.backend_id} / {failure.layers[0].where}", cause)
        _log.warning(
            "%s %s to the next backend",
            failure,
            "They move" if len(failure.layers) > 1 else "It moves",
            exc_info=cause if wants_traceback(_log) else None,
        )
        answer = failed_support(ReasonCode.PREPARATION, f"preparation failed: {cause}", cause)
        for layer in failure.layers:
            # A compiled layer stands for several, which move one by one.
            for layer_id in network.origins.get(layer.id, (layer.id,)):
                excluded[layer_id, failure.backend_id] = answer
