"""Puts copies between backends that cannot share memory."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import IBackendInternal
from armpy.graph import Graph, Value
from armpy.network import Network
from armpy.ops import MemCopy
from armpy.types import BackendId

HOST = "host"
"""The memory space that all backends with `IBackendInternal.shares_host_memory` use."""


def memory_space(backend: IBackendInternal) -> str:
    """Name of the memory that a backend's tensors are in."""
    return HOST if backend.shares_host_memory else backend.backend_id


def bridge(
    graph: Graph, backends: Mapping[int, IBackendInternal]
) -> tuple[Graph, dict[int, BackendId], int]:
    """Copy each value into every memory in which it is read and does not live.

    Parameters
    ----------
    backends : mapping of int to IBackendInternal
        By layer id.

    Returns
    -------
    graph : Graph
        With a MemCopy layer per copy; the same object if none is needed.
    backend_ids : dict of int to str
        By layer id; a copy belongs to the backend that it copies for.
    num_copies : int
    """
    ids = {layer.id: backends[layer.id].backend_id for layer in graph.layers}
    if all(memory_space(backend) == HOST for backend in backends.values()):
        return graph, ids, 0
    bridger = _Bridger(graph, backends, ids)
    return bridger.run(), ids, bridger.num_copies


class _Bridger:
    """Rebuilds a graph with copies; knows each value in each memory it has reached."""

    def __init__(
        self, graph: Graph, backends: Mapping[int, IBackendInternal], ids: dict[int, BackendId]
    ) -> None:
        self._graph = graph
        self._backends = backends
        self._ids = ids
        self._net = Network()
        self._homes: dict[Value, str] = {}
        self._known: dict[tuple[Value, str], Value] = {}
        self._next_id = max((layer.id for layer in graph.layers), default=-1) + 1
        self.num_copies = 0

    def run(self) -> Graph:
        """Walk the layers and add copies before the readers that need them."""
        graph, net = self._graph, self._net
        for value, shape in zip(graph.inputs, graph.default_shapes, strict=True):
            self._put(value, HOST, net.input(value.name, value.info, default_shape=shape))
        for variable in graph.variables:
            value = variable.value
            self._put(value, HOST, net.variable(value.name, value.info, variable.initial))
        for layer in graph.layers:
            backend = self._backends[layer.id]
            space = memory_space(backend)
            made = net.add_layer(
                layer.operation,
                [
                    None if value is None else self._in(value, space, backend.backend_id)
                    for value in layer.inputs
                ],
                name=layer.name,
                outputs=layer.output_infos,
                output_names=[value.name for value in layer.outputs],
                layer_id=layer.id,
                origins=layer.origins,
            )
            for old, new in zip(layer.outputs, made.outputs, strict=True):
                self._put(old, space, new)
        for name, value in zip(graph.output_names, graph.outputs, strict=True):
            net.output(name, self._in(value, HOST, HOST))
        for variable in graph.variables:
            net.assign(self._known[variable.value, HOST], self._in(variable.next_value, HOST, HOST))
        return net.build()

    def _put(self, old: Value, space: str, new: Value) -> None:
        """Remember where a value is made."""
        self._homes[old] = space
        self._known[old, space] = new

    def _in(self, value: Value, space: str, backend_id: BackendId) -> Value:
        """The value in a memory space, copied if it is not there yet."""
        if value.data is not None:
            # Constants are handed to workloads as host arrays in every memory space.
            space = HOST
            if (value, space) not in self._known:
                info = value.info
                constant = self._net.constant(
                    value.data,
                    name=value.name,
                    data_type=info.data_type,
                    quantization=info.quantization,
                )
                self._known[value, space] = constant
        elif (value, space) not in self._known:
            home = self._homes[value]
            layer = self._net.add_layer(
                MemCopy(),
                [self._known[value, home]],
                name=f"[ {value.name} {home} -> {space} ]",
                outputs=[value.info],
                layer_id=self._next_id,
            )
            self._ids[layer.id] = backend_id
            self._next_id += 1
            self.num_copies += 1
            self._known[value, space] = layer.outputs[0]
        return self._known[value, space]
