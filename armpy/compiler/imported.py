"""Optimised networks some of whose inputs and outputs lie in memory that backends import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from armpy.backend import IMemoryOptimizerStrategy
from armpy.compiler.memory.memory_copies import Factories, hands_on
from armpy.compiler.memory.plan import MemoryPlan, plan_memory, working_memory
from armpy.compiler.optimized import OptimizedNetwork
from armpy.compiler.placement import LayerPlacement, Placement
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Rewriter, Value
from armpy.ops.backend_internal import MemCopy
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.types import HOST, BackendId

Importers = Mapping[BackendId, HandleFactoryProxy]
"""Importers of a tensor, by backend; the first one lends it to the others."""


@dataclass(frozen=True, eq=False)
class ImportedNetwork(OptimizedNetwork):
    """An optimised network whose backends read and write imported memory."""

    # Per input of the network that it was made from, the backends that have imported it, each of
    # which has a source of its own here; None for one that stays in the caller's array.
    importers: tuple[tuple[BackendId, ...] | None, ...] = ()
    targets: tuple[BackendId | None, ...] = ()  # per output, the backend that has imported it
    # By id of a layer that was added, whose memory it copies.
    copied_from: dict[int, BackendId] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Return whether every input and output is imported."""
        return None not in self.importers and None not in self.targets


def readers_of(network: OptimizedNetwork, source: Value) -> tuple[BackendId, ...]:
    """List the backends that read an input, the first reader first; the core if there is none."""
    copies = {source}
    readers: dict[BackendId, None] = {}
    for layer in network.graph.layers:
        if not copies.isdisjoint(layer.inputs):
            if isinstance(layer.operation, MemCopy):
                # A reader of a copy reads the same input, and may import it itself.
                copies.update(layer.outputs)
            else:
                readers[network.backend_ids[layer.id]] = None
    if not copies.isdisjoint(network.graph.results):
        readers[HOST] = None
    return tuple(readers) or (HOST,)


def writer_of(network: OptimizedNetwork, result: Value) -> tuple[Value, BackendId]:
    """Return the value copied to an output of the network, and the backend of its layer."""
    layer = _layers_by_output(network.graph).get(result)
    # One step is enough: copies are made from where a value was written, never of copies.
    if layer is not None and isinstance(layer.operation, MemCopy):
        result = layer.inputs[0]  # type: ignore[assignment]  # a copy has an input
        layer = _layers_by_output(network.graph).get(result)
    return result, HOST if layer is None else network.backend_ids[layer.id]


def _layers_by_output(graph: Graph) -> dict[Value, Layer]:
    """The layer that writes each value."""
    return {value: layer for layer in graph.layers for value in layer.outputs}


def import_tensors(
    network: OptimizedNetwork,  # fully shaped
    factories: Mapping[BackendId, Factories],  # By backend id
    inputs: Mapping[int, Importers],  # By index of an input, importing backends and memory
    # By index of an output, its writer and its importers.
    outputs: Mapping[int, tuple[BackendId, HandleFactoryProxy]],
    strategies: Mapping[BackendId, IMemoryOptimizerStrategy] | None = None,  # how arenas are packed
) -> ImportedNetwork:
    """Let backends read inputs and write outputs where they have been imported.

    The result has the layers of `network` under their ids. Copies of imported tensors are removed;
    a backend that can share none of the imports gets a copy.
    """
    return _ImportRewriter(network, factories, inputs, outputs).run(strategies)


class _ImportRewriter:
    """Rebuilds a graph; knows where each of its values is to be found."""

    def __init__(
        self,
        network: OptimizedNetwork,
        factories: Mapping[BackendId, Factories],
        inputs: Mapping[int, Importers],
        outputs: Mapping[int, tuple[BackendId, HandleFactoryProxy]],
    ) -> None:
        graph = network.graph
        self._network = network
        self._factories = factories
        self._inputs = {graph.inputs[index]: importers for index, importers in inputs.items()}
        self._outputs = outputs
        self._roots: dict[Value, tuple[int, HandleFactoryProxy]] = {}
        written = _layers_by_output(graph)
        for index, (_, factory) in outputs.items():
            root, _ = writer_of(network, graph.outputs[index])
            if root in written:  # the first of several outputs is written in place
                self._roots.setdefault(root, (index, factory))
        self._rewriter = Rewriter(graph)
        self._source_of: dict[Value, Value] = {source: source for source in self._inputs}
        self._at: dict[tuple[Value, BackendId], Value] = {}
        self._ids: dict[int, BackendId] = {}
        self._copied_from: dict[int, BackendId] = {}
        self._factory_ids: dict[Value, str] = {}

    def run(
        self, strategies: Mapping[BackendId, IMemoryOptimizerStrategy] | None
    ) -> ImportedNetwork:
        """Walk the layers."""
        old = self._network
        graph = old.graph
        inputs = self._add_sources()
        read = self._values_read()
        for layer in graph.layers:
            if not isinstance(layer.operation, MemCopy):
                self._add(layer)
            elif layer.inputs[0] in self._source_of:
                self._source_of[layer.outputs[0]] = self._source_of[layer.inputs[0]]
            # Importing an output saves exactly this copy, unless it has another reader.
            elif not read.isdisjoint(layer.outputs):
                self._add(layer)
        built = self._rewriter.finish(
            list(inputs),
            [self._output(index, value) for index, value in enumerate(graph.outputs)],
            [self._result(variable.next_value) for variable in graph.variables],
            list(inputs.values()),
            drop_dead=False,
        )
        # Planned anew: imported tensors need no place in an arena, and new copies do.
        memory = plan_memory(built, self._ids, strategies, self._factory_ids, self._factories)
        # What backends import of each other as before.
        there = set(built.values()).difference(self._roots)
        imports = {key: planned for key, planned in old.imports.items() if key[0] in there}
        num_outputs = len(graph.outputs)
        return ImportedNetwork(
            built,
            self._ids,
            memory,
            self._placement(built, memory),
            old.source,
            old.assignment,
            old.origins,
            imports,
            old.model_options,
            tuple(
                tuple(self._inputs[value]) if value in self._inputs else None
                for value in graph.inputs
            ),
            tuple(self._outputs[i][0] if i in self._outputs else None for i in range(num_outputs)),
            self._copied_from,
        )

    def _add_sources(self) -> dict[Value, tuple[int, ...] | None]:
        """Make the sources of imported inputs; return all of the network, with default shapes."""
        graph = self._network.graph
        sources: dict[Value, tuple[int, ...] | None] = {}
        for value, shape in zip(graph.inputs, graph.default_shapes, strict=True):
            if value not in self._inputs:
                sources[value] = shape
            for place in self._inputs.get(value, ()):
                # A source for each backend, as each has a handle of its own over the same memory.
                source = self._rewriter.value(value.info, f"{value.name} at {place}")
                self._at[value, place] = source
                sources[source] = None
        return sources

    def _values_read(self) -> set[Value | None]:
        """The values that layers, variables, or outputs that stay in an array, need."""
        graph = self._network.graph
        read = {value for layer in graph.layers for value in layer.inputs}
        read.update(variable.next_value for variable in graph.variables)
        read.update(v for i, v in enumerate(graph.outputs) if i not in self._outputs)
        return read

    def _placement(self, built: Graph, memory: MemoryPlan) -> Placement:
        """The placement with the copies that the new graph has."""
        old = self._network.placement
        before = {layer.layer_id: layer for layer in old.layers}
        layers = tuple(
            before.get(layer.id)
            or LayerPlacement(layer.id, layer.name, layer.operation.name, self._ids[layer.id], -1)
            for layer in built.layers
        )
        return replace(
            old,
            layers=layers,
            num_copies=sum(layer.operation == MemCopy().name for layer in layers),
            arena_bytes=working_memory(built, self._ids, memory),
        )

    def _add(self, layer: Layer) -> None:
        """Add an unchanged layer, reading its inputs from their present places."""
        place = self._network.backend_ids[layer.id]
        is_copy = isinstance(layer.operation, MemCopy)  # which maps whatever it reads
        inputs = [
            value if value is None or is_copy else self._for(value, place) for value in layer.inputs
        ]
        self._rewriter.keep(layer, inputs)
        self._ids[layer.id] = place
        tensors = self._network.memory.tensors
        for value in layer.outputs:
            if value in tensors:
                self._factory_ids[value] = tensors[value].arena.factory_id

    def _for(self, value: Value, place: BackendId) -> Value:
        """A value as a backend can read it, copied if need be."""
        source = self._source_of.get(value)
        if source is not None:
            return self._imported(source, place)
        if value not in self._roots:
            return value
        _, home = writer_of(self._network, value)
        if place == home or self._shares(self._roots[value][1], place):
            return value
        return self._copied(value, value, home, place)

    def _imported(self, source: Value, place: BackendId) -> Value:
        """An imported input as a backend can read it."""
        if (source, place) in self._at:
            return self._at[source, place]
        for lender, factory in self._inputs[source].items():
            # The handle of another backend saves a copy.
            if self._shares(factory, place):
                return self._at[source, lender]
        lender = next(iter(self._inputs[source]))
        return self._copied(source, self._at[source, lender], lender, place)

    def _shares(self, writer: HandleFactoryProxy, place: BackendId) -> bool:
        """Return whether a backend's layers can be handed what a factory has imported."""
        readers = self._factories[place]
        return any(hands_on(writer, reader, is_imported=True) for reader in readers)

    def _copied(self, key: Value, value: Value, home: BackendId, place: BackendId) -> Value:
        """A copy for all layers of a backend."""
        if (key, place) not in self._at:
            self._at[key, place] = self._copy(key.name, value, home, place)
        return self._at[key, place]

    def _copy(self, name: str, value: Value, home: BackendId, place: BackendId) -> Value:
        """Add a copy of a value of a name."""
        name = f"[ {name} {home} -> {place} ]"
        layer = self._rewriter.insert(MemCopy(), [value], name, [value.info])
        self._ids[layer.id] = place
        self._copied_from[layer.id] = home
        (copy,) = layer.outputs
        self._factory_ids[copy] = self._factories[place][0].factory_id
        return copy

    def _output(self, index: int, value: Value) -> Value:
        """Return the value that the caller receives for an output."""
        root, _ = writer_of(self._network, value)
        if self._roots.get(root, (None,))[0] == index:
            return root
        if index in self._outputs:
            return self._copy_of(value, self._outputs[index][0])
        return self._result(value)

    def _result(self, value: Value) -> Value:
        """A result that the caller gets in an array."""
        if value in self._source_of or value in self._roots:
            return self._copy_of(value, HOST)
        return value

    def _copy_of(self, value: Value, place: BackendId) -> Value:
        """A copy of a value that is a result itself, is an input, or a constant."""
        source = self._source_of.get(value)
        if source is not None:
            home = next(iter(self._inputs[source]))
            return self._copy(source.name, self._at[source, home], home, place)
        root, home = writer_of(self._network, value)
        return self._copy(root.name, root, home, place)
