"""Pass that leaves broadcasting to the layers that broadcast anyway."""

from __future__ import annotations

from armpy.compiler.pass_selection import BROADCASTING, kind_of
from armpy.compiler.passes.context import PassContext, layer_like
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter


def remove_broadcasts(graph: Graph, context: PassContext) -> Graph:
    """Let elementwise layers read what is broadcast for them, where the shape stays theirs.

    References
    ----------
    Arm NN BroadcastToOptimizationLayer.
    """
    found = {layer: inputs for layer in graph.layers if (inputs := _bare(graph, context, layer))}
    if not found:
        return graph
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        if layer in found:
            rewriter.replace(layer, layer.operation, [rewriter.mapped(v) for v in found[layer]])
        else:
            rewriter.keep(layer)
    return rewriter.finish()


def _bare(graph: Graph, context: PassContext, layer: Layer) -> tuple[Value, ...]:
    """What an elementwise layer can read instead of its inputs; empty if nothing else."""
    if kind_of(layer) not in BROADCASTING:
        return ()
    inputs = [value for value in layer.inputs if value is not None]
    for index, value in enumerate(inputs):
        producer = graph.producers.get(value)
        if producer is None or kind_of(producer) != "BroadcastTo":
            continue
        # One by one, each on top of those before: one operand has to keep the shape for all.
        tried = [*inputs[:index], producer["input"], *inputs[index + 1 :]]
        alike = layer_like(layer, layer.operation, tried, [layer.output.info.with_shape(None)])
        same_shape = alike is not None and alike.output.info.shape == layer.output.info.shape
        if same_shape and context.stays(layer, layer.operation, tried):
            inputs = tried
    return () if tuple(inputs) == layer.inputs else tuple(inputs)
