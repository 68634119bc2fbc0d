"""Optional operands: those that operations can go without."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.errors import NnapiError, ResultCode
from armpy.nnapi.model_description import Subgraph
from armpy.nnapi.operations import definitions
from armpy.nnapi.request import RequestArgument


def optional_operands(graph: Subgraph) -> frozenset[int]:
    """The operands that an operation can go without."""
    found: set[int] = set()
    for node in graph.operations:
        definition = definitions().get(node.type)
        if definition is not None:
            ins, outs = ([graph.operands[i] for i in side] for side in (node.inputs, node.outputs))
            match = definition.match(ins, outs)
            pairs = zip((*match.inputs, *match.outputs), (*node.inputs, *node.outputs), strict=True)
            found.update(index for argument, index in pairs if argument.optional)
    return frozenset(found)


def check_left_out(graph: Subgraph, outputs: Sequence[RequestArgument], where: str) -> None:
    """Check that outputs without a buffer are optional ones.

    Raises
    ------
    NnapiError
        OP_FAILED if one is not.
    """
    missing = [position for position, argument in enumerate(outputs) if argument.has_no_value]
    if not missing:
        return
    optional = optional_operands(graph)
    for position in missing:
        if graph.outputs[position] not in optional:
            raise NnapiError(
                f"output {position} has no buffer, and the operation cannot go without it",
                code=ResultCode.OP_FAILED,
                where=where,
            )
