"""Graphs inside of nodes, as graphs of their own."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from armpy.graph import Graph, Value
from armpy.graph.network import Network, OperatorBuilder
from armpy.tensor import TensorInfo
from armpy_onnx.items import Form, Item, flat, form_of, formed
from armpy_onnx.messages.canonical import free_names
from armpy_onnx.structures.walking import Scope, Walker


class OuterScope:
    """Values that graphs read of the graphs around them.

    Parameters
    ----------
    scope : Scope
        Scope of the node that runs them.
    extra : sequence of (Value or None)
        Further values that they receive.

    Attributes
    ----------
    handed : tuple of Value
        Operands of the layer that become inputs of its graphs; constants are constants there.
    """

    def __init__(
        self,
        walker: Walker,
        scope: Scope,
        graphs: Sequence[onnx.GraphProto],
        extra: Sequence[Value | None] = (),
    ) -> None:
        self.walker = walker
        self.scope = scope
        names = dict.fromkeys(
            name for graph in graphs for name in free_names(graph, walker.functions.free_names)
        )
        self.items = {
            name: scope.values[name] for name in (*names, *scope.reads) if name in scope.values
        }
        self._all = dict.fromkeys([*flat(list(self.items.values())), *flat(extra)])
        self.handed = tuple(value for value in self._all if value.data is None)

    def enclosed(
        self, names: Sequence[str], infos: Sequence[TensorInfo], *, keeps_shapes: bool = True
    ) -> InnerGraph:
        """Begin a graph that takes some inputs of its own, then captured ones.

        Parameters
        ----------
        keeps_shapes : bool
            Whether the shapes of captured values are known in the graph.
        """
        network = Network(self.scope.name)
        own = [network.input(name, info) for name, info in zip(names, infos, strict=True)]
        inner: dict[Value, Value] = {}
        for number, value in enumerate(self._all):
            if value.data is None:
                info = value.info.with_shape(value.info.shape if keeps_shapes else None)
                inner[value] = network.input(f"{number}:{value.name}", info)
            else:
                inner[value] = network.constant(
                    value.data,
                    name=value.name,
                    data_type=value.info.data_type,
                    quantization=value.info.quantization,
                )
        return InnerGraph(self, network, own, inner)


class InnerGraph:
    """A graph under construction; see `OuterScope.enclosed`.

    Parameters
    ----------
    inputs : list of Value
        Inputs of the graph itself.
    inner : dict of Value to Value
        Values in the graph that stand for those around it.
    """

    def __init__(
        self,
        outer_scope: OuterScope,
        network: Network,
        inputs: list[Value],
        inner: dict[Value, Value],
    ) -> None:
        self._network = network
        self._inner = inner
        self.inputs = inputs
        self.walker = outer_scope.walker.within(OperatorBuilder.of(network))
        self.scope = outer_scope.scope.child(
            {
                name: formed([inner[value] for value in flat([item])], [form_of(item)])[0]
                for name, item in outer_scope.items.items()
            },
            reads=outer_scope.scope.reads,
        )
        self.forms: list[Form] = []
        self.results: list[Value] = []

    def of(self, value: Value) -> Value:
        """Return the value's stand-in around the graph."""
        return self._inner[value]

    def walk(self, graph: onnx.GraphProto, given: Sequence[Item], prefix: str) -> list[Item]:
        """Add a graph's nodes; its outputs."""
        return self.walker.inlined(graph, given, self.scope, prefix)

    def finish(self, items: Sequence[Item]) -> None:
        """Set the graph's outputs."""
        self.forms = [form_of(item) for item in items]
        self.results = flat(items)
        for number, value in enumerate(self.results):
            self._network.output(f"output_{number}", value)

    def build(self) -> Graph:
        """The graph."""
        return self._network.build()

    def restored(self, values: Sequence[Value]) -> list[Item]:
        """Return the graph's results, of the outputs of the layer that runs it."""
        return formed(values, self.forms)
