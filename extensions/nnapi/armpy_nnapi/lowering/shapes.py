"""Dimensions of a model's operands that follow from those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from armpy.compiler import specialize
from armpy.errors import ArmpyError
from armpy.graph import Graph
from armpy_nnapi.codes import CONTROL_FLOW_CODES, OperationCode
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.extensions.extensions import ExtensionLookup
from armpy_nnapi.lowering.lower_model import lower_model

Dimensions: TypeAlias = tuple[int, ...]

FROM_OUTSIDE = (
    Lifetime.TEMPORARY_VARIABLE,
    Lifetime.SUBGRAPH_INPUT,
    Lifetime.SUBGRAPH_OUTPUT,
)
"""Lifetimes of what an operation by itself is given."""


def with_known_dimensions(
    description: ModelDescription, extensions: ExtensionLookup
) -> ModelDescription:
    """Fill in the dimensions of a model's operands that follow from those of others.

    Parameters
    ----------
    description : ModelDescription
        Valid.
    extensions : callable
        Gives the extensions of devices.
    """
    graphs = (description.main, *description.referenced)
    # Most models say all dimensions; specialising each operation costs more than this look.
    if all(operand.is_fully_known for graph in graphs for operand in graph.operands):
        return description
    main, *referenced = (_known(description, graph, extensions) for graph in graphs)
    return replace(description, main=main, referenced=tuple(referenced))


def _known(description: ModelDescription, graph: Subgraph, extensions: ExtensionLookup) -> Subgraph:
    """One graph with the dimensions that follow from those of its inputs and constants."""
    operands = list(graph.operands)
    for node in graph.operations:
        has_shapes = node.type not in (*CONTROL_FLOW_CODES, OperationCode.OEM_OPERATION)
        if not has_shapes or all(operands[index].is_fully_known for index in node.outputs):
            continue
        try:
            shaped = specialize(lowered_alone(description, operands, node, extensions))
        except ArmpyError:
            continue  # its errors are reported where it is to be run
        for index, dimensions in zip(
            node.outputs, made_dimensions(shaped, operands, node), strict=True
        ):
            operands[index] = learned(operands[index], dimensions)
    return replace(graph, operands=tuple(operands))


def lowered_alone(
    description: ModelDescription,
    operands: Sequence[Operand],
    node: OperationNode,
    extensions: ExtensionLookup,
) -> Graph:
    """Lower one operation as a graph of its own.

    Raises
    ------
    ArmpyError
        As from `lower_model`.
    """
    # Each once, although an operation may read the same operand twice.
    from_outside = dict.fromkeys(
        index for index in node.inputs if operands[index].lifetime in FROM_OUTSIDE
    )
    alone = Subgraph(tuple(operands), (node,), tuple(from_outside), node.outputs)
    return lower_model(replace(description, main=alone), extensions=extensions)


def made_dimensions(
    graph: Graph, operands: Sequence[Operand], node: OperationNode
) -> list[Dimensions]:
    """Dimensions of one operation's outputs in the graph of it alone; 0 where not known."""
    return [
        _dimensions(value.info.shape, operands[index])
        for value, index in zip(graph.outputs, node.outputs, strict=True)
    ]


def _dimensions(shape: Sequence[int | None] | None, operand: Operand) -> Dimensions:
    """A shape of the core as an operand's dimensions."""
    if shape is None:
        return ()
    rank = len(shape) - len(operand.element_shape)
    return tuple(dim or 0 for dim in shape[:rank])


def learned(operand: Operand, dimensions: Dimensions) -> Operand:
    """Add dimensions that were found out to an operand."""
    own = operand.dimensions
    if not operand.is_tensor or operand.is_fully_known or (own and len(own) != len(dimensions)):
        return operand
    # An operand without dimensions has an open rank and takes that of the other.
    known = own or (0,) * len(dimensions)
    pairs = zip(known, dimensions, strict=True)
    return replace(operand, dimensions=tuple(mine or other for mine, other in pairs))
