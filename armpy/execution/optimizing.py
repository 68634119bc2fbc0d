"""Optimises networks for the backends of a runtime, without loading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.compiler import Evaluator, OptimizedNetwork, optimize_graph, specialize
from armpy.compiler.graph_dumps import dump
from armpy.compiler.optimize import simplified
from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.execution.arrays.reshaping import input_shapes
from armpy.execution.loaded_network import LoadedNetwork
from armpy.execution.placement_policy import decide, reported
from armpy.execution.programs.graph_split import is_shaped
from armpy.execution.settings import NetworkSettings
from armpy.graph import Graph, nested_graphs, verify_graph
from armpy.graph.network import Network
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase


def graph_of(network: object) -> Graph:
    """The graph of what a caller gave.

    Raises InvalidArgumentError if it is neither a network nor a graph.
    """
    graph = network.build() if isinstance(network, Network) else network
    if not isinstance(graph, Graph):
        raise InvalidArgumentError(
            "this cannot be loaded",
            expected="a Network or Graph",
            actual=type(graph).__name__,
            fix="Load files with armpy.load",
        )
    return graph


def optimize_with(
    backends: Sequence[BackendProxy],
    evaluator: Evaluator | None,
    graph: Graph,
    settings: NetworkSettings,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> OptimizedNetwork:
    """Optimise a graph for these backends; shapes and errors as for `armpy.optimize`."""
    with phase("validate"):
        for part in (graph, *nested_graphs(graph)):
            verify_graph(part)
    dump(settings.optimizer, "loaded", graph)
    chosen = input_shapes(graph, shapes)
    known = specialize(specialize(graph, evaluator=evaluator), chosen, (), evaluator)
    if not is_shaped(known):
        raise UnimplementedError(
            "shapes of the network depend on the elements of its inputs",
            where="optimize",
            fix="Load the network itself, which is optimised when it runs",
        )
    options = settings.optimizer
    simple = simplified(known, backends, options)
    decision = decide(simple, backends, evaluator, settings, LoadedNetwork)
    wanted = None if decision is None else decision.backends
    optimized = optimize_graph(simple, backends, options, wanted=wanted)
    return reported(optimized, decision, options.preference)
