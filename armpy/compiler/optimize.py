"""Compilation of a graph to an optimised network: assign, substitute, bridge, plan memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from armpy.backend import (
    CacheUse,
    Capability,
    IBackendInternal,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    has_matching_capability,
)
from armpy.backend.caches import gathered_cache_uses
from armpy.compiler.assign import (
    Assignment,
    Exclusions,
    SupportOracle,
    assign_backends,
)
from armpy.compiler.compile_timeout import in_time, next_deadline, time_per_part
from armpy.compiler.compiled_parts import current_parts
from armpy.compiler.graph_dumps import dump, dump_folder, dump_part, dump_questions
from armpy.compiler.memory.memory_copies import (
    Factories,
    ImportRefusals,
    PlacedGraph,
    bridge,
    handle_factories,
)
from armpy.compiler.memory.plan import MemoryPlan, plan_memory, working_memory
from armpy.compiler.optimized import OptimizedNetwork
from armpy.compiler.options import OptimizerOptions
from armpy.compiler.pass_selection import worthwhile
from armpy.compiler.placement import LayerPlacement, Placement, Refusal
from armpy.compiler.substitute import apply_substitutions, offer
from armpy.core.symbolic import is_traced
from armpy.core.vlog import is_on, vlog, wants_traceback
from armpy.errors import (
    Argument,
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    CompilationPostponedError,
)
from armpy.graph import Graph, Layer, SubgraphView, select_subgraphs, verify_graph
from armpy.plugins.placement import PlacementDecision
from armpy.plugins.proxy.guard import device_of, keeps_programs
from armpy.plugins.proxy.guarded_call import failed_support
from armpy.profiling import phase
from armpy.types import HOST, BackendId, Preference

FIRST_LEVEL_WITH_CACHING = 29
"""The feature level from which on devices keep compiled models: NNAPI 1.2."""

_log = logging.getLogger("armpy.compiler")


def simplified(
    graph: Graph,  # fully shaped
    backends: Sequence[IBackendInternal],  # most preferred first
    options: OptimizerOptions,
) -> Graph:
    """A graph after the passes that options ask for.

    Raises GraphValidationError if a pass of the application's own makes something else of it.
    """
    is_asked = options.passes or options.reduce_fp32_to_fp16 or options.reduce_fp32_to_bf16
    if not is_asked and not worthwhile(graph):
        return graph
    # Most graphs need no pass, and a start is not to pay for importing them.
    from armpy.compiler.passes.pipeline import run_passes  # noqa: PLC0415

    return run_passes(graph, backends, options)


@phase("optimise")
def optimize_graph(
    graph: Graph,  # as `specialize` leaves it
    backends: Sequence[IBackendInternal],  # most preferred first
    options: OptimizerOptions | None = None,
    # Layers that backends have failed to prepare; grows with what fails here
    excluded: Exclusions | None = None,
    # What makes each backend's tensors; asked of the backends that get layers if left out
    factories: Mapping[BackendId, Factories] | None = None,
    # By value's name and backend's id, what could not be imported and is copied instead
    refused_imports: ImportRefusals | None = None,
    wanted: Mapping[int, BackendId] | None = None,  # by layer id, the backend that is asked first
    decision: PlacementDecision | None = None,  # has them, and the reason for the report
) -> OptimizedNetwork:
    """Assign layers to backends, let these optimise their parts, plan memory.

    Raises BackendCapabilityError if no backend takes a layer, or one falls back where that is an
    error; GraphValidationError if the graph is not well formed.
    """
    with phase("validate"):
        verify_graph(graph)
    options = options or OptimizerOptions()
    excluded = {} if excluded is None else excluded
    oracle = SupportOracle(backends, options)
    if decision is not None:
        wanted = decision.backends
    rounds = _Rounds(graph, oracle, excluded, options, wanted)
    # All go by context: backends are called, and report caches, from deep below.
    with (
        time_per_part(options.preparation_timeout_s),
        gathered_cache_uses() as uses,
        dump_questions(options),
    ):
        assignment, partitions, substitutions = rounds.run()
    dump(options, "assigned", graph, _ids(assignment))
    substituted, origins = apply_substitutions(graph, substitutions)
    # All layers of a part had one backend.
    by_layer = {layer_id: assignment.backends[ids[0]] for layer_id, ids in origins.items()}
    # Asked of backends with layers alone: making factories can take a device's memory.
    if factories is None:
        used = {backend.get_id(): backend for backend in by_layer.values()}
        factories = {name: handle_factories(backend)[0] for name, backend in used.items()}
    by_id = {layer_id: backend.get_id() for layer_id, backend in by_layer.items()}
    dump(options, "substituted", substituted, by_id)
    bridged = bridge(substituted, by_layer, factories, refused_imports)
    dump(options, "bridged", bridged.graph, bridged.backend_ids)
    memory = MemoryPlan()
    # Offsets need sizes: a graph with open shapes is planned once these are known.
    if bridged.graph.is_fully_shaped:
        strategies = options.memory_strategies
        ids, made_by = bridged.backend_ids, bridged.factory_ids
        memory = plan_memory(bridged.graph, ids, strategies, made_by, factories)
    placement = _report(
        bridged, assignment, partitions, origins, memory, backends, options, decision, uses
    )
    _act_on_fallback(placement, backends, options)
    return OptimizedNetwork(
        bridged.graph,
        bridged.backend_ids,
        memory,
        placement,
        graph,
        _ids(assignment),
        origins,
        bridged.imports,
        options.model_options,
    )


@phase("optimise")
def place_layers(
    graph: Graph,
    backends: Sequence[IBackendInternal],
    options: OptimizerOptions | None = None,
    excluded: Exclusions | None = None,
) -> OptimizedNetwork:
    """Assign layers that are run one by one in host memory, as their output shapes are unknown.

    Parameters
    ----------
    graph : Graph
        Layers whose inputs are fully shaped.
    backends, options, excluded
        As for `optimize_graph`.

    Raises
    ------
    BackendCapabilityError
        As for `optimize_graph`.
    """
    options = options or OptimizerOptions()
    oracle = SupportOracle(backends, options)
    # Nothing is offered for compiling, and no memory planned: both need the shapes that are
    # missing.
    assignment = assign_backends(graph, oracle, excluded or {})
    ids = _ids(assignment)
    parts = [SubgraphView.of(graph, [layer]) for layer in graph.layers]
    origins: dict[int, tuple[int, ...]] = {layer.id: (layer.id,) for layer in graph.layers}
    memory = MemoryPlan()
    bridged = PlacedGraph(graph, ids, {})
    placement = _report(bridged, assignment, parts, origins, memory, backends, options)
    _act_on_fallback(placement, backends, options)
    return OptimizedNetwork(graph, ids, memory, placement, graph, ids, origins)


def _ids(assignment: Assignment) -> dict[int, BackendId]:
    """Each layer's backend."""
    return {layer_id: backend.get_id() for layer_id, backend in assignment.backends.items()}


class _Rounds:
    """Assigns and offers subgraphs until no backend gives a part back."""

    def __init__(
        self,
        graph: Graph,
        oracle: SupportOracle,
        excluded: Exclusions,
        options: OptimizerOptions,
        wanted: Mapping[int, BackendId] | None = None,
    ) -> None:
        self._wanted = wanted or {}
        self._graph = graph
        self._oracle = oracle
        self._excluded = excluded
        self._options = options
        # A part that comes out the same in a later round is not compiled again.
        self._answers: dict[tuple[BackendId, tuple[int, ...]], list[Substitution]] = {}

    def run(self) -> tuple[Assignment, list[SubgraphView], list[Substitution]]:
        """Repeat until every offered part is taken; each round excludes at least one pair."""
        while True:
            assignment = assign_backends(
                self._graph,
                self._oracle,
                self._excluded,
                self._wanted,
                asks_all_before=self._options.is_placed_by_cost,
            )
            # In front of the offers, as programs of such a backend would be thrown away.
            if self._exclude_all_or_nothing(assignment):
                continue
            backends = assignment.backends
            parts = select_subgraphs(self._graph, assignment.backend_id)
            refused_before = len(self._excluded)
            substitutions: list[Substitution] = []
            for part in parts:
                substitutions += self._offer(backends[part.layers[0].id], part)
            # Where a part has failed, its neighbours may belong together otherwise: all parts are
            # cut anew.
            if len(self._excluded) == refused_before:
                return assignment, parts, substitutions

    def _exclude_all_or_nothing(self, assignment: Assignment) -> bool:
        """Take a backend out that wants all layers and refuses one; whether there was any."""
        # Reversed, so that of each backend the first refusal is left, which is the one that is
        # reported.
        refused = {r.backend: r for r in reversed(assignment.refusals)}
        for backend in self._oracle.backends:
            refusal = refused.get(backend.get_id())
            wants_all = has_matching_capability(
                Capability.ALL_OR_NOTHING, True, backend.get_capabilities()
            )
            # One that takes nothing is out already; excluding it again would never end.
            takes_some = any(b is backend for b in assignment.backends.values())
            if refusal is not None and wants_all and takes_some:
                text = f"it runs all layers or none; {refusal.operation} '{refusal.layer}': "
                support = replace(refusal.support, code=ReasonCode.OTHER, text=text + refusal.text)
                for layer in self._graph.layers:
                    key = (layer.id, backend.get_id())
                    # A pair that has failed before keeps its own reason.
                    self._excluded.setdefault(key, support)
                return True
        return False

    def _offer(self, backend: IBackendInternal, part: SubgraphView) -> list[Substitution]:
        """Offer one part; layers that the backend cannot take are excluded from it."""
        key = (backend.get_id(), tuple(layer.id for layer in part.layers))
        if key not in self._answers:
            # Before it is asked, as it may crash.
            dumped = dump_part(self._options, backend.get_id(), part)
            # The time of a part begins with its own offer, not with the network's.
            request = self._options.request_for(backend, next_deadline())
            prepare = self._preparation(backend, part, request)
            try:
                about = f"{len(part.layers)} layers from {part.layers[0].where}"
                if is_on.compilation:
                    vlog("compilation", "%s is offered %s", backend.get_id(), about)
                with dumped, phase("compile", backend.get_id(), about):
                    views = in_time(backend.get_id(), request.deadline_s, prepare)
            except CompilationPostponedError:
                raise  # its caller takes other backends for the whole network
            # The boundary has turned every exception of a backend into one of these.
            except ArmpyError as error:
                # Sizes are traced as a trial: nothing falls back where that fails.
                infos = [value.info for value in self._graph.values()]
                is_trial = any(is_traced(*info.known_shape) for info in infos)
                _log.log(
                    logging.INFO if is_trial else logging.WARNING,
                    "%s; its %d layers fall back",
                    error,
                    len(part.layers),
                    exc_info=wants_traceback(_log),
                )
                self._exclude(backend, part.layers, str(error), error)
                return []
            for view in views.failed:
                reason = views.reasons.get(view) or "the backend could not compile this part"
                self._exclude(backend, view.layers, reason, BackendError(reason))
            self._answers[key] = views.substitutions
        return self._answers[key]

    def _preparation(
        self, backend: IBackendInternal, part: SubgraphView, request: PreparationRequest
    ) -> Callable[[], OptimizationViews]:
        """Return a function that lets a backend prepare a part, or load an earlier preparation."""
        otherwise = self._preparation_from_cache(backend, part, request)
        parts = current_parts()
        if parts is None:
            return otherwise
        return partial(parts.prepare, self._graph, backend, part, request, otherwise)

    def _preparation_from_cache(
        self, backend: IBackendInternal, part: SubgraphView, request: PreparationRequest
    ) -> Callable[[], OptimizationViews]:
        """Return the call that has a backend prepare a part, or loads it from the core's cache."""
        caching = self._options.caching
        is_old = device_of(backend).feature_level < FIRST_LEVEL_WITH_CACHING
        has_token = caching is not None and caching.token is not None
        # A backend that loads a program makes no model that could be written down.
        is_new = bool(dump_folder(self._options))
        if caching is None or is_old or is_new or not keeps_programs(backend, has_token=has_token):
            return partial(offer, self._graph, backend, part, request)
        from armpy.compiler import compiled_cache  # noqa: PLC0415 - few backends leave it their files

        return compiled_cache.cached_preparation(self._graph, backend, part, request, caching)

    def _exclude(
        self, backend: IBackendInternal, layers: Sequence[Layer], text: str, error: ArmpyError
    ) -> None:
        """Remember that a backend does not run some layers after all."""
        support = failed_support(ReasonCode.COMPILATION, text, error)
        for layer in layers:
            self._excluded[layer.id, backend.get_id()] = support


def _report(
    bridged: PlacedGraph,
    assignment: Assignment,
    partitions: Sequence[SubgraphView],
    origins: dict[int, tuple[int, ...]],
    memory: MemoryPlan,
    backends: Sequence[IBackendInternal],
    options: OptimizerOptions,
    decision: PlacementDecision | None = None,
    cache_uses: Iterable[CacheUse] = (),
) -> Placement:
    """The placement report."""
    graph, backend_ids = bridged.graph, bridged.backend_ids
    partition_of = {
        layer.id: number for number, part in enumerate(partitions) for layer in part.layers
    }
    layers = tuple(
        LayerPlacement(
            layer.id,
            layer.name,
            layer.operation.name,
            backend_ids[layer.id],
            # Copies stand for no layer of the model, and so are in no partition.
            partition_of[origins[layer.id][0]] if layer.id in origins else -1,
            layer.origins,
        )
        for layer in graph.layers
    )
    # Zeros first, so that the report has the backends in the caller's order.
    shares = {name: 0 for name in (*(backend.get_id() for backend in backends), HOST)}
    for backend in assignment.backends.values():
        shares[backend.get_id()] += 1
    first = backends[0].get_id()
    # Control flow that the core runs has not fallen back: no backend was to run it.
    fallbacks = len(assignment.backends) - shares[first] - shares[HOST]
    # What cost or the application assigns to another backend has not fallen back.
    if options.is_placed_by_cost or options.affinity:
        fallbacks = len({r.layer_id for r in assignment.refusals if r.backend == first})
    # Why values are copied that could have been imported.
    refused_imports = [
        Refusal(layer.id, layer.name, "MemImport", backend_ids[layer.id], answer)
        for layer in graph.layers
        if (answer := bridged.refusals.get(layer.id)) is not None
    ]
    return Placement(
        layers,
        (*assignment.refusals, *refused_imports),
        {name: count for name, count in shares.items() if count},
        fallbacks,
        len(partitions),
        len(graph.layers) - len(origins),
        working_memory(graph, backend_ids, memory),
        Preference.ORDER.value if decision is None else options.preference.value,
        "order" if decision is None else decision.basis,
        () if decision is None else decision.alternatives,
        tuple(cache_uses),
    )


def _act_on_fallback(
    placement: Placement, backends: Sequence[IBackendInternal], options: OptimizerOptions
) -> None:
    """Warn or raise where layers do not run on the first preferred backend."""
    if not placement.fallbacks:
        return
    if options.on_fallback != "error":
        if options.on_fallback == "warn" or options.preference is Preference.NPU:
            _log.warning("%s", placement)
        return
    count = placement.fallbacks
    raise BackendCapabilityError(
        f"{count} layer{'s do' if count != 1 else ' does'} not run on {backends[0].get_id()}",
        expected=f"{backends[0].get_id()} to run every layer",
        actual="; ".join(
            f"{r.operation} '{r.layer}', refused by {r.backend}: {r.text}"
            # A large model can have thousands, too many for an error.
            for r in placement.refusals[:10]
        ),
        argument=Argument("on_fallback", "error"),
        fix="Set it to 'allow' to use another backend as well, or change the network",
    )
