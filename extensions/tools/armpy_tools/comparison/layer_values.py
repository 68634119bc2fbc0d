"""Values that layers give: each by itself, and where it ran."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.compiler import Placement
from armpy.execution import Runtime
from armpy.graph import Graph, Layer, Value
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.types import BackendId
from armpy_tools.comparison.trace import trace


def made_by_layers(graph: Graph) -> list[Value]:
    """Return the values of a graph's layers, in order."""
    return [value for layer in graph.layers for value in layer.outputs]


def values_alone(
    graph: Graph, runtime: Runtime, right: Mapping[Value, Array]
) -> tuple[dict[Value, Array], Placement | None]:
    """Return each layer's values alone, on inputs that are right.

    Parameters
    ----------
    graph : Graph
    runtime : Runtime
    right : mapping of Value to ndarray
        The expected values of the graph's inputs and of all layers.

    Returns
    -------
    dict of Value to ndarray
        By the graph's values.
    Placement or None
        Where the layers ran; None if there are none.
    """
    apart, sources = _apart(graph)
    outputs, placement = trace(apart, runtime, [right[value] for value in sources], apart.outputs)
    ordered = (outputs[value] for value in apart.outputs)
    return dict(zip(made_by_layers(graph), ordered, strict=True)), placement


def _apart(graph: Graph) -> tuple[Graph, list[Value]]:
    """Each layer by itself in one network, and the values that its inputs stand for."""
    net = Network("layers apart")
    known: dict[Value, Value] = {}
    sources: list[Value] = []

    def read(value: Value) -> Value:
        if value not in known and value.data is not None:
            info = value.info
            known[value] = net.constant(
                value.data,
                name=value.name,
                data_type=info.data_type,
                quantization=info.quantization,
            )
        elif value not in known:
            known[value] = net.input(f"value_{value.id}", value.info)
            sources.append(value)
        return known[value]

    for layer in graph.layers:
        inputs = [None if value is None else read(value) for value in layer.inputs]
        copied = net.add_layer(
            layer.operation,
            inputs,
            name=layer.name,
            outputs=layer.output_infos,
            layer_id=layer.id,
        )
        for number, value in enumerate(copied.outputs):
            net.output(f"{layer.id}_{number}", value)
    return net.build(), sources


def backend_of(layer: Layer, placement: Placement | None) -> BackendId:
    """Return the backend that ran a layer, also if it has become a part of another one."""
    for placed in placement.layers if placement is not None else ():
        if placed.layer == layer.name or layer.name in placed.origins:
            return placed.backend
    return ""
