"""Placement of a graph's layers: by the order of the backends, or as a plugin decides."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from armpy.backend import Capability, has_matching_capability
from armpy.compiler.assign import Exclusions, SupportOracle
from armpy.execution.setup.settings import NetworkSettings
from armpy.graph import Graph
from armpy.plugins.placement import PlacementDecision, PlacementQuestion
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase
from armpy.types import BackendId


def decide(
    graph: Graph,  # fully shaped, after the optimiser's passes
    backends: Sequence[BackendProxy],  # most preferred first
    settings: NetworkSettings,
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

        question = PlacementQuestion(
            graph, tuple(backends), MappingProxyType(choices), options.preference
        )
        return place(question)


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
