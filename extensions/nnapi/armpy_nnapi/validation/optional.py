"""Operands that NNAPI allows a model to omit."""

from __future__ import annotations

from armpy_nnapi.description.model_description import Subgraph
from armpy_nnapi.operations import definitions


def optional_operands(graph: Subgraph) -> frozenset[int]:
    """Return the indices of operands that are optional for at least one operation."""
    indexes: set[int] = set()
    for node in graph.operations:
        definition = definitions().get(node.type)
        # Control flow and extension operations have no definitions here: none is optional.
        if definition is not None:
            ins, outs = ([graph.operands[i] for i in side] for side in (node.inputs, node.outputs))
            match = definition.match(ins, outs)
            pairs = zip((*match.inputs, *match.outputs), (*node.inputs, *node.outputs), strict=True)
            indexes.update(index for argument, index in pairs if argument.optional)
    return frozenset(indexes)
