"""Cuts of networks where shapes stop being known a second time, so that both parts are traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armpy.compiler import Evaluator, specialize
from armpy.execution.programs.graph_split import Split, split_before_unknown, with_every_value
from armpy.execution.steps.control_flow import Shapes
from armpy.graph import Graph
from armpy.graph.rewriter import remove_dead
from armpy.ops.operation import Array
from armpy.tensor import Shape


def cut_graph(
    graph: Graph,
    decisive: Sequence[bool],  # per input, whether its elements decide on shapes
    shapes: Shapes,
    values: Sequence[Array | None],  # of the inputs that decide
    evaluator: Evaluator | None,
) -> tuple[Split, Graph] | None:
    """Cut a graph where shapes are not known for some shapes and values of its inputs.

    Returns the split, and its rest with all of its inputs' shapes that is the same in all calls;
    None if nothing follows such a place.
    """
    graph = remove_dead(graph)
    every = specialize(with_every_value(graph), shapes, values, evaluator)
    shaped = every.outputs[len(graph.outputs) :]
    split = split_before_unknown(graph, decisive, shaped)
    if split is None or split.rest is None:
        return None
    outputs = [value for layer in graph.layers for value in layer.outputs]
    known = dict(zip(outputs, [value.info.shape for value in shaped], strict=True))
    ranks = [
        None if value.info.shape is not None else _known_part(known[value], decides=decides)
        for value, decides in zip(split.rest.sources, split.decisive, strict=True)
    ]
    return split, specialize(split.rest.graph, ranks)


def _known_part(
    shape: Shape | None, *, decides: bool
) -> tuple[Any, ...] | None:  # Any: sizes, and None for those that are open
    """What of a shape is the same in all calls: all of it if its elements decide, else its rank."""
    if shape is None:
        return None
    return shape if decides else (None,) * len(shape)
