"""Placement of a graph's layers: by the order of the backends, or as a plugin decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from armpy.backend import Capability, has_matching_capability
from armpy.compiler import Evaluator
from armpy.compiler.assign import Exclusions, SupportOracle
from armpy.execution.setup.properties import NetworkProperties
from armpy.execution.setup.settings import NetworkSettings
from armpy.graph import Graph
from armpy.plugins.placement import PlacementDecision, PlacementQuestion
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import Profiler, phase
from armpy.types import BackendId

LoadTrial = Callable[..., Any]
"""Loads an optimised network for a trial: `LoadedNetwork`."""  # Any: it imports this module


def decide(
    graph: Graph,  # fully shaped, after the optimiser's passes
    backends: Sequence[BackendProxy],  # most preferred first
    evaluator: Evaluator | None,
    settings: NetworkSettings,
    load: LoadTrial | None,  # loads candidates that are run; None if nothing may be run
    excluded: Exclusions | None = None,  # layers that backends have failed with
) -> PlacementDecision | None:
    """Return where the layers of a graph are to run, by the preference of its settings.

    Returns None if the order of the backends decides, or no backend takes a layer.
    """
    place, options = settings.place, settings.optimizer
    if place is None or not graph.layers:
        return None
    with phase("decide placement"):
        choices = choices_of(graph, SupportOracle(backends, options), excluded or {})
        # A layer that no backend takes is an error, which `assign_backends` raises.
        if not all(choices.values()):
            return None

        def load_trial(wanted: Mapping[int, BackendId], profiler: Profiler | None) -> object:
            # Fallbacks are measured too, and contexts of backends are not notified of trials.
            changed = replace(
                settings,
                optimizer=replace(options, on_fallback="allow"),
                profiler=profiler,
                after_run=None,
                properties=NetworkProperties(),
            )
            return load and load(graph, backends, evaluator, changed, wanted=wanted)

        may_run = load is not None and not (excluded or settings.protected_mode)
        return place(
            PlacementQuestion(
                graph,
                tuple(backends),
                MappingProxyType(choices),
                options.preference,
                options.model_options,
                f"{options.passes!r} {settings.environment}",
                load_trial if may_run else None,
            )
        )


def choices_of(
    graph: Graph, oracle: SupportOracle, excluded: Exclusions
) -> dict[int, tuple[BackendId, ...]]:
    """The backends that take each layer, most preferred first."""
    takers = {
        layer.id: tuple(
            backend.get_id()
            for backend in oracle.candidates(layer)
            if (layer.id, backend.get_id()) not in excluded and oracle.ask(backend, layer, graph)
        )
        for layer in graph.layers
    }
    for backend in oracle.backends:
        name, capabilities = backend.get_id(), backend.get_capabilities()
        # Known here, or the optimiser would take such a backend out after the decision.
        wants_all = has_matching_capability(Capability.ALL_OR_NOTHING, True, capabilities)
        if wants_all and not all(name in ids for ids in takers.values()):
            takers = {key: tuple(i for i in ids if i != name) for key, ids in takers.items()}
    return takers
