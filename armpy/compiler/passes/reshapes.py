"""Passes over layers that keep the order of elements: reshapes, and transposes that are such."""

from __future__ import annotations

from armpy.compiler.pass_selection import RESHAPES, kind_of, moves_nothing
from armpy.compiler.passes.context import PassContext
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter
from armpy.ops.reshaping import Reshape


def merge_reshapes(graph: Graph, context: PassContext) -> Graph:
    """Let a reshape of a reshape read what the first one reads; none is left if the shape returns.

    References
    ----------
    Arm NN OptimizeConsecutiveReshapes.
    """
    roots = {layer: chain for layer in graph.layers if (chain := _chain(graph, layer))}
    merged = {
        layer: chain
        for layer, chain in roots.items()
        if _same_shape(chain[-1]["input"], layer.output) or _is_taken(context, layer, chain[-1])
    }
    if not merged:
        return graph
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        if layer not in merged:
            rewriter.keep(layer)
            continue
        root = merged[layer][-1]["input"]
        if _same_shape(root, layer.output):
            rewriter.alias(layer.output, rewriter.mapped(root))
        else:
            operation = Reshape(layer.output.info.known_shape)
            origins = (*reversed(merged[layer]), layer)
            rewriter.replace(layer, operation, [rewriter.mapped(root)], origins=origins)
    return rewriter.finish()


def _chain(graph: Graph, layer: Layer) -> list[Layer]:
    """The reshapes in front of a reshape, the nearest first."""
    found: list[Layer] = []
    if _is_reshape(layer):
        above = graph.producers.get(layer["input"])
        while above is not None and _is_reshape(above):
            found.append(above)
            above = graph.producers.get(above["input"])
    return found


def _is_reshape(layer: Layer) -> bool:
    """Whether a layer only gives elements another shape; scales along an axis would move."""
    is_reshape = kind_of(layer) in RESHAPES and len(layer.inputs) == 1
    return is_reshape and not layer.output.info.has_per_axis_quantization


def _same_shape(one: Value, other: Value) -> bool:
    """Whether a value can stand for another one of the same elements."""
    return one.info.shape == other.info.shape and one.info.quantization == other.info.quantization


def _is_taken(context: PassContext, layer: Layer, first: Layer) -> bool:
    """Whether the reshape in the place of several stays where the last one is."""
    return context.stays(layer, Reshape(layer.output.info.known_shape), first.inputs)


def reshape_transposes(graph: Graph, context: PassContext) -> Graph:
    """Make transposes that only move axes of size 1 reshapes, which copy no element.

    References
    ----------
    Arm NN PermuteAsReshape, TransposeAsReshape.
    """
    found = {
        layer
        for layer in graph.layers
        if moves_nothing(layer)
        and context.stays(layer, Reshape(layer.output.info.known_shape), layer.inputs)
    }
    if not found:
        return graph
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        if layer in found:
            inputs = [rewriter.mapped(layer["input"])]
            rewriter.replace(layer, Reshape(layer.output.info.known_shape), inputs)
        else:
            rewriter.keep(layer)
    return rewriter.finish()
