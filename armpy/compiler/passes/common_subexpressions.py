"""Pass that computes once what layers side by side would compute several times."""

from __future__ import annotations

from armpy.compiler.pass_selection import MERGED, kind_of
from armpy.compiler.passes.context import PassContext
from armpy.graph import Graph
from armpy.graph.rewriter import Rewriter


def merge_equal_siblings(graph: Graph, context: PassContext) -> Graph:
    """Let equal conversions and movements of one tensor be one layer.

    References
    ----------
    Arm NN SquashEqualPermuteSiblings, SquashEqualTransposeSiblings, SquashEqualReshapeSiblings.
    """
    first: dict[object, int] = {}
    # The same object tells the pipeline that nothing has changed.
    if not any(_is_repeated(graph, index, first) for index in range(len(graph.layers))):
        return graph
    rewriter = Rewriter(graph)
    made: dict[object, int] = {}
    for index, layer in enumerate(graph.layers):
        if _is_repeated(graph, index, made):
            earlier = graph.layers[made[_key(graph, index)]]
            rewriter.alias(layer.output, rewriter.mapped(earlier.output))
        else:
            rewriter.keep(layer)
    return rewriter.finish()


def _is_repeated(graph: Graph, index: int, first: dict[object, int]) -> bool:
    """Whether an equal layer of the same inputs stands in front of one."""
    layer = graph.layers[index]
    is_merged = kind_of(layer) in MERGED
    return is_merged and first.setdefault(_key(graph, index), index) != index


def _key(graph: Graph, index: int) -> object:
    """What tells a layer's output from others."""
    layer = graph.layers[index]
    # With the outputs: casts of one tensor differ in these alone.
    return layer.operation, layer.inputs, layer.output_infos
