"""Passes over layers that move or convert elements as others do: reshapes, broadcasts, repeats."""

from __future__ import annotations

from armpy.compiler.pass_selection import BROADCASTING, MERGED, RESHAPES, kind_of, moves_nothing
from armpy.compiler.passes.context import PassContext, layer_like
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, rewrite
from armpy.ops.reshaping import Reshape


def merge_equal_siblings(graph: Graph, context: PassContext) -> Graph:
    """Let equal conversions and movements of one tensor be one layer.

    References
    ----------
    Arm NN SquashEqualPermuteSiblings, SquashEqualTransposeSiblings, SquashEqualReshapeSiblings.
    """
    first: dict[object, list[Layer]] = {}
    repeated: dict[Layer, Layer] = {}
    for layer in graph.layers:
        if kind_of(layer) in MERGED:
            # Compared, as hashing operations and shapes would fix traced sizes in them.
            siblings = first.setdefault((type(layer.operation), layer.inputs), [])
            # With the outputs: casts of one tensor differ in these alone.
            key = layer.operation, layer.output_infos
            earlier = next((e for e in siblings if (e.operation, e.output_infos) == key), None)
            siblings.append(layer)
            if earlier is not None:
                repeated[layer] = earlier

    def change(rewriter: Rewriter, layer: Layer, earlier: Layer) -> None:
        rewriter.alias(layer.output, rewriter.mapped(earlier.output))

    return rewrite(graph, repeated, change)


def merge_reshapes(graph: Graph, context: PassContext) -> Graph:
    """Let a reshape of a reshape read the first one's input; none is left if the shape returns.

    References
    ----------
    Arm NN OptimizeConsecutiveReshapes.
    """
    roots = {layer: chain for layer in graph.layers if (chain := _chain(graph, layer))}
    merged = {
        layer: chain
        for layer, chain in roots.items()
        if _same_shape(chain[-1]["input"], layer.output)
        or context.stays(layer, _reshape(layer), chain[-1].inputs)
    }

    def change(rewriter: Rewriter, layer: Layer, chain: list[Layer]) -> None:
        root = chain[-1]["input"]
        if _same_shape(root, layer.output):
            rewriter.alias(layer.output, rewriter.mapped(root))
        else:
            origins = (*reversed(chain), layer)
            rewriter.replace(layer, _reshape(layer), [rewriter.mapped(root)], origins=origins)

    return rewrite(graph, merged, change)


def reshape_transposes(graph: Graph, context: PassContext) -> Graph:
    """Make transposes that only move axes of size 1 reshapes, which copy no element.

    References
    ----------
    Arm NN PermuteAsReshape, TransposeAsReshape.
    """
    reshapes = {
        layer: _reshape(layer)
        for layer in graph.layers
        if moves_nothing(layer) and context.stays(layer, _reshape(layer), layer.inputs)
    }

    def change(rewriter: Rewriter, layer: Layer, reshape: Reshape) -> None:
        rewriter.replace(layer, reshape, [rewriter.mapped(layer["input"])])

    return rewrite(graph, reshapes, change)


def remove_broadcasts(graph: Graph, context: PassContext) -> Graph:
    """Let elementwise layers read the input of a broadcast, where the shape stays theirs.

    References
    ----------
    Arm NN BroadcastToOptimizationLayer.
    """
    bare = {layer: inputs for layer in graph.layers if (inputs := _bare(graph, context, layer))}

    def change(rewriter: Rewriter, layer: Layer, inputs: tuple[Value, ...]) -> None:
        rewriter.replace(layer, layer.operation, [*map(rewriter.mapped, inputs)])

    return rewrite(graph, bare, change)


def _reshape(layer: Layer) -> Reshape:
    """A reshape to the shape of a layer's output."""
    return Reshape(layer.output.info.known_shape)


def _chain(graph: Graph, layer: Layer) -> list[Layer]:
    """The reshapes in front of a reshape, the nearest first."""
    chain: list[Layer] = []
    if _is_reshape(layer):
        above = graph.producers.get(layer["input"])
        while above is not None and _is_reshape(above):
            chain.append(above)
            above = graph.producers.get(above["input"])
    return chain


def _is_reshape(layer: Layer) -> bool:
    """Return whether a layer only gives elements another shape; scales along an axis would move."""
    is_reshape = kind_of(layer) in RESHAPES and len(layer.inputs) == 1
    return is_reshape and not layer.output.info.has_per_axis_quantization


def _same_shape(left: Value, other: Value) -> bool:
    """Return whether a value can stand for another one of the same elements."""
    return left.info.shape == other.info.shape and left.info.quantization == other.info.quantization


def _bare(graph: Graph, context: PassContext, layer: Layer) -> tuple[Value, ...]:
    """Return the values that an elementwise layer can read instead of its inputs; may be empty."""
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
