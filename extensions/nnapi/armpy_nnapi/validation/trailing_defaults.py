"""Removal of trailing arguments that have their default values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy_nnapi.codes import OperationCode
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.operations import Argument, definitions

_C = OperationCode
# The list of NNAPI's own removal; others keep their defaults.
SHORTENED = frozenset(
    {
        _C.AVERAGE_POOL_2D,
        _C.BATCH_TO_SPACE_ND,
        _C.CONV_2D,
        _C.DEPTHWISE_CONV_2D,
        _C.DEPTH_TO_SPACE,
        _C.L2_NORMALIZATION,
        _C.L2_POOL_2D,
        _C.LOCAL_RESPONSE_NORMALIZATION,
        _C.MAX_POOL_2D,
        _C.RESIZE_BILINEAR,
        _C.RESIZE_NEAREST_NEIGHBOR,
        _C.SOFTMAX,
        _C.SPACE_TO_BATCH_ND,
        _C.SPACE_TO_DEPTH,
    }
)
"""Operations whose trailing arguments are left out where they are the defaults."""


def without_trailing_defaults(description: ModelDescription) -> ModelDescription:
    """The same model in forms that older devices take too.

    References
    ----------
    NNAPI ``ModelBuilder::removeTrailingArgumentsWithDefaultValues``.
    """
    return replace(
        description,
        main=_shortened(description.main),
        referenced=tuple(_shortened(graph) for graph in description.referenced),
    )


def _shortened(graph: Subgraph) -> Subgraph:
    nodes = tuple(_shortened_node(node, graph.operands) for node in graph.operations)
    return graph if nodes == graph.operations else replace(graph, operations=nodes)


def _shortened_node(node: OperationNode, operands: Sequence[Operand]) -> OperationNode:
    """An operation in its shortest form that means the same."""
    definition = definitions().get(node.type)
    if node.type not in SHORTENED or definition is None:
        return node
    inputs = [operands[index] for index in node.inputs]
    match = definition.match(inputs, [operands[index] for index in node.outputs])
    count = len(inputs)
    while count and _is_default(match.inputs[count - 1], inputs[count - 1]):
        count -= 1
    # Not every beginning of a form is one: dilations come in pairs.
    legal = [
        len(form.inputs)
        for form in definition.forms
        if form.inputs == match.form.inputs[: len(form.inputs)]
        and form.outputs == match.form.outputs
        and count <= len(form.inputs)
    ]
    return replace(node, inputs=node.inputs[: min(legal)])


def _is_default(argument: Argument, operand: Operand) -> bool:
    """Return whether an argument is a constant with its default value."""
    # Only constants that the model has copied: NNAPI does not look into shared memory for this.
    if argument.default is None or operand.lifetime is not Lifetime.CONSTANT_COPY:
        return False
    elements = operand.elements
    return elements is not None and elements.size == 1 and elements.item() == argument.default
