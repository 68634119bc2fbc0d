"""A part of a graph, as it is shown to a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from armpy.graph.graph import Graph, Layer, Value, consumers_of


@dataclass(frozen=True, eq=False)
class SubgraphView:
    """Some layers of a graph with the values that cross their edge.

    Parameters
    ----------
    layers : tuple of Layer
        In the graph's order.
    inputs : tuple of Value
        Read by the layers and neither written by them nor constant.
    outputs : tuple of Value
        Written by the layers and read by others, or results of the graph.

    References
    ----------
    Arm NN SubgraphView.
    """

    layers: tuple[Layer, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @cached_property
    def consumers(self) -> Mapping[Value, tuple[Layer, ...]]:
        """The layers of the view that read each value, in order; without what none reads."""
        return consumers_of(self.layers)

    @cached_property
    def producers(self) -> Mapping[Value, Layer]:
        """The layer of the view that writes each value; without what none writes."""
        return {value: layer for layer in self.layers for value in layer.outputs}

    @classmethod
    def of(cls, graph: Graph, layers: Iterable[Layer]) -> SubgraphView:
        """The view of some layers of `graph`; each is counted once, others are left out."""
        positions = graph.positions
        # A graph may have as many views as layers, so none may look at the whole of it.
        ordered = tuple(sorted(positions.keys() & set(layers), key=positions.__getitem__))
        chosen = frozenset(ordered)

        def is_read_outside(value: Value) -> bool:
            readers = graph.consumers.get(value, ())
            return value in graph.result_set or any(reader not in chosen for reader in readers)

        return cls._of_layers(ordered, is_read_outside)

    def part(self, layers: Iterable[Layer]) -> SubgraphView:
        """The view of some of these layers, for a backend that divides what it is offered."""
        chosen = set(layers)
        ordered = tuple(layer for layer in self.layers if layer in chosen)
        outside = set(self.outputs)
        outside.update(v for layer in self.layers if layer not in chosen for v in layer.inputs if v)
        return self._of_layers(ordered, outside.__contains__)

    @classmethod
    def _of_layers(
        cls, layers: tuple[Layer, ...], is_read_outside: Callable[[Value], bool]
    ) -> SubgraphView:
        """The view of layers in order."""
        made = {value for layer in layers for value in layer.outputs}
        inputs = dict.fromkeys(
            value
            for layer in layers
            for value in layer.inputs
            if value is not None and value.data is None and value not in made
        )
        outputs = filter(is_read_outside, (v for layer in layers for v in layer.outputs))
        return cls(layers, tuple(inputs), tuple(outputs))

    def is_convex_in(self, graph: Graph | SubgraphView) -> bool:
        """Whether no path leaves the view and comes back into it.

        Notes
        -----
        What is convex in a subgraph that is convex itself is so in the whole graph.
        """
        chosen = set(self.layers)
        tainted: set[Value] = set()
        outside: set[Value] = set()
        for layer in graph.layers:
            reads_outside = any(value in outside for value in layer.inputs if value is not None)
            if layer in chosen:
                if reads_outside:
                    return False
                tainted.update(layer.outputs)
            elif reads_outside or any(v in tainted for v in layer.inputs if v is not None):
                outside.update(layer.outputs)
        return True
