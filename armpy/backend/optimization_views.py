"""Optimization views: a backend's answer to a subgraph that it may optimise."""

from __future__ import annotations

from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, SubgraphView
from armpy.graph.network import Network
from armpy.ops.operation import Operation


@dataclass(frozen=True, eq=False)
class Substitution:
    """A subgraph and its replacement."""

    subgraph: SubgraphView  # the offered view, or a part of it that is convex
    replacement: Graph
    """The graph that takes the place of `subgraph`: inputs and outputs in the same order, of equal
    shapes, types and quantisation. Its layers run on the backend that made it.
    """

    @classmethod
    def by_operation(
        cls, subgraph: SubgraphView, operation: Operation, name: str = ""
    ) -> Substitution:
        """Put one layer in a subgraph's place."""
        net = Network(name or operation.name)
        inputs = [net.input(f"{i}", value.info) for i, value in enumerate(subgraph.inputs)]
        layer = net.add_layer(
            operation,
            inputs,
            # Three find the place in the model; a subgraph may have hundreds.
            name=name or "+".join(layer.name for layer in subgraph.layers[:3]),
            outputs=[value.info for value in subgraph.outputs],
            origins=tuple(layer.name for layer in subgraph.layers),
        )
        for index, value in enumerate(layer.outputs):
            net.output(f"{index}", value)
        return cls(subgraph, net.build())

    @classmethod
    def by_nothing(cls, subgraph: SubgraphView) -> Substitution:
        """Connect input i of a subgraph with output i."""
        net = Network("nothing")
        for index, value in enumerate(subgraph.inputs):
            net.output(f"{index}", net.input(f"{index}", value.info))
        return cls(subgraph, net.build())


@dataclass(eq=False)
class OptimizationViews:
    """Division of an offered subgraph by a backend.

    Every layer of the offered view is in exactly one of the four lists.
    """

    substitutions: list[Substitution] = field(default_factory=list)
    failed: list[SubgraphView] = field(default_factory=list)
    """Layers that this backend cannot run after all; offered to the next one. `fail` adds one with
    its reason.
    """
    untouched: list[SubgraphView] = field(default_factory=list)
    """Layers that this backend runs one by one."""
    deleted: list[SubgraphView] = field(default_factory=list)
    """Layers that do nothing: output i of the view equals input i."""
    reasons: dict[SubgraphView, str] = field(default_factory=dict)
    """Why a view is in `failed`, for the placement report."""

    def fail(self, view: SubgraphView, reason: str) -> None:
        """Give layers back, with the reason in words."""
        self.failed.append(view)
        self.reasons[view] = reason
