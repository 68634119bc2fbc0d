"""Copy layers between backends that cannot share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.backend import (
    HostTensorHandleFactory,
    IBackendInternal,
    IMemoryManager,
    ITensorHandleFactory,
    NetworkResources,
    TensorHandleFactoryRegistry,
)
from armpy.graph import Graph, Value
from armpy.network import Network
from armpy.ops.backend_internal import MemCopy
from armpy.plugins.boundary import ask_method
from armpy.plugins.guard import GuardedHandleFactory
from armpy.types import HOST, BackendId

_HOST_FACTORY = HostTensorHandleFactory()


def choose_handle_factory(
    backend: IBackendInternal, network: NetworkResources | None = None
) -> tuple[ITensorHandleFactory, tuple[IMemoryManager, ...]]:
    """Ask a backend which factory makes its tensors of a network.

    Returns
    -------
    factory : ITensorHandleFactory
        The first preferred one that the backend registered; the host's if none.
    managers : tuple of IMemoryManager
        What it registered beside the factories.
    """
    registry = TensorHandleFactoryRegistry()
    backend_id = backend.backend_id
    backend.register_tensor_handle_factories_for_network(registry, network or NetworkResources())
    preferences = ask_method(backend_id, Sequence, backend, "get_handle_factory_preferences")
    factory = GuardedHandleFactory(backend_id, registry.first_of(preferences))
    return factory, registry.memory_managers


def bridge(
    graph: Graph,
    backends: Mapping[int, IBackendInternal],
    factories: Mapping[BackendId, ITensorHandleFactory],
) -> tuple[Graph, dict[int, BackendId], int]:
    """Copy each value into every memory in which it is read and cannot be shared.

    Parameters
    ----------
    backends : mapping of int to IBackendInternal
        By layer id.
    factories : mapping of str to ITensorHandleFactory
        By backend id.

    Returns
    -------
    graph : Graph
        With a MemCopy layer per copy; the same object if none is needed.
    backend_ids : dict of int to str
        By layer id; a copy belongs to the backend that it copies for, `HOST` for the caller.
    num_copies : int
    """
    ids = {layer.id: backends[layer.id].backend_id for layer in graph.layers}
    used = {name: _HOST_FACTORY if name == HOST else factories[name] for name in ids.values()}
    if all(shares(_HOST_FACTORY, f) and shares(f, _HOST_FACTORY) for f in used.values()):
        return graph, ids, 0
    bridger = _Bridger(graph, {HOST: _HOST_FACTORY, **used}, ids)
    return bridger.run(), ids, bridger.num_copies


def shares(writer: ITensorHandleFactory, reader: ITensorHandleFactory) -> bool:
    """Whether one factory's tensors can be read by another's users without a copy."""
    return writer == reader or bool(writer.export_sources & reader.import_sources)


class _Bridger:
    """Rebuilds a graph with copies; knows each value at each place it has reached."""

    def __init__(
        self,
        graph: Graph,
        factories: Mapping[str, ITensorHandleFactory],
        ids: dict[int, BackendId],
    ) -> None:
        self._graph = graph
        self._factories = factories
        self._ids = ids
        self._net = Network()
        self._places: dict[Value, dict[str, Value]] = {}
        self._next_id = max((layer.id for layer in graph.layers), default=-1) + 1
        self.num_copies = 0

    def run(self) -> Graph:
        """Walk the layers and add copies before the readers that need them."""
        graph, net = self._graph, self._net
        for value, shape in zip(graph.inputs, graph.default_shapes, strict=True):
            self._put(value, HOST, net.input(value.name, value.info, default_shape=shape))
        for variable in graph.variables:
            self._put(variable.value, HOST, net.variable_like(variable))
        for layer in graph.layers:
            place = self._ids[layer.id]
            made = net.add_layer(
                layer.operation,
                [None if value is None else self._at(value, place) for value in layer.inputs],
                name=layer.name,
                outputs=layer.output_infos,
                output_names=[value.name for value in layer.outputs],
                layer_id=layer.id,
                origins=layer.origins,
            )
            for old, new in zip(layer.outputs, made.outputs, strict=True):
                self._put(old, place, new)
        for name, value in zip(graph.output_names, graph.outputs, strict=True):
            net.output(name, self._at(value, HOST))
        for variable in graph.variables:
            source = self._places[variable.value][HOST]
            net.assign(source, self._at(variable.next_value, HOST))
        return net.build()

    def _put(self, old: Value, place: str, new: Value) -> None:
        """Remember where a value is."""
        self._places.setdefault(old, {})[place] = new

    def _at(self, value: Value, place: str) -> Value:
        """The value as a place can read it, copied if need be."""
        if value.data is not None:
            return self._constant(value)
        places = self._places[value]
        for other, known in places.items():
            if shares(self._factories[other], self._factories[place]):
                return known
        home, known = next(iter(places.items()))
        layer = self._net.add_layer(
            MemCopy(),
            [known],
            name=f"[ {value.name} {home} -> {place} ]",
            outputs=[value.info],
            layer_id=self._next_id,
        )
        self._ids[layer.id] = place
        self._next_id += 1
        self.num_copies += 1
        places[place] = layer.outputs[0]
        return layer.outputs[0]

    def _constant(self, value: Value) -> Value:
        """A constant, which workloads are handed as a host array everywhere."""
        places = self._places.setdefault(value, {})
        if HOST not in places:
            places[HOST] = self._net.constant(
                value.data,  # type: ignore[arg-type]  # the caller has asked
                name=value.name,
                data_type=value.info.data_type,
                quantization=value.info.quantization,
            )
        return places[HOST]
