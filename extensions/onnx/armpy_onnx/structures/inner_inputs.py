"""Inputs of the graphs inside nodes, some of which are initializers, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx

from armpy_onnx.reading import kind_of, nodes_inside

_NUM_INPUTS: Mapping[str, Callable[[onnx.NodeProto], int]] = {
    "If": lambda node: 0,
    "Loop": lambda node: max(len(node.input), 2),
    "Scan": lambda node: len(node.input),
    "SequenceMap": lambda node: len(node.input),
}
"""Values that a node gives to its graphs, by kind."""


def separate_inputs(model: onnx.ModelProto) -> None:
    """Let each input of a graph inside a node be an input or an initializer, not both.

    Parameters
    ----------
    model : onnx.ModelProto
        Changed in place.

    Notes
    -----
    Where a graph has more inputs than its node gives values to, those that are initializers are
    left out, as ONNX Runtime does: files of form 3 list their initializers among the inputs. An
    input that the node gives a value to hides an initializer of its name, as in ONNX's reference;
    ONNX Runtime refuses such files.
    """
    bodies = (model.graph.node, *(function.node for function in model.functions))
    for body in bodies:
        # A list: the graphs are changed on the way.
        for node in [*nodes_inside(body)]:
            count_of = _NUM_INPUTS.get(kind_of(node))
            if count_of is not None:
                for attribute in node.attribute:
                    if attribute.HasField("g"):
                        _separate(attribute.g, count_of(node))


def _separate(graph: onnx.GraphProto, num_inputs: int) -> None:
    """Remove surplus inputs that are initializers, then initializers that are inputs."""
    initial = {tensor.name for tensor in graph.initializer}
    initial.update(tensor.values.name for tensor in graph.sparse_initializer)
    if len(graph.input) > num_inputs:
        _keep(graph.input, [value.name not in initial for value in graph.input])
    given = {value.name for value in graph.input}
    _keep(graph.initializer, [tensor.name not in given for tensor in graph.initializer])
    _keep(
        graph.sparse_initializer,
        [tensor.values.name not in given for tensor in graph.sparse_initializer],
    )


def _keep(field: Any, is_kept: Iterable[bool]) -> None:  # Any: a repeated field of messages
    """Remove the messages of a repeated field that are not kept."""
    removed = [place for place, keep in enumerate(is_kept) if not keep]
    for place in reversed(removed):
        del field[place]
