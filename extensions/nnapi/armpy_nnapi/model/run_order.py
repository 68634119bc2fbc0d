"""Topological order of a graph's operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from armpy_nnapi.codes import operation_name
from armpy_nnapi.description.model_description import Lifetime, Operand, OperationNode
from armpy_nnapi.results import bad_data

_WRITTEN = (Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT)
"""Lifetimes of operands that an operation has to write before others can read them."""


def run_order(operands: Sequence[Operand], operations: Sequence[OperationNode]) -> list[int]:
    """Topological order of operations: one in which they can run.

    Returns
    -------
    list of int
        Indexes of `operations`. Of those that are ready, the one that became so last is next.

    Raises
    ------
    NnapiError
        BAD_DATA if some wait for each other, or for an operand that nothing writes.

    References
    ----------
    NNAPI ``ModelBuilder::sortIntoRunOrder``.
    """
    # Kahn's algorithm, with a stack of ready operations in place of a queue: NNAPI's own order.
    readers: dict[int, list[int]] = defaultdict(list)
    num_missing = [0] * len(operations)
    ready = []
    for number, node in enumerate(operations):
        for index in node.inputs:
            if operands[index].lifetime in _WRITTEN:
                num_missing[number] += 1  # twice if it reads it twice, as it is counted down twice
                readers[index].append(number)
        if not num_missing[number]:
            ready.append(number)
    order: list[int] = []
    while ready:
        number = ready.pop()
        order.append(number)
        for index in operations[number].outputs:
            for reader in readers[index]:
                num_missing[reader] -= 1
                if num_missing[reader] == 0:
                    ready.append(reader)
    if len(order) != len(operations):
        raise _stuck(operands, operations, order)
    return order


def _stuck(
    operands: Sequence[Operand], operations: Sequence[OperationNode], order: Sequence[int]
) -> Exception:
    """The error for operations that never become ready."""
    number = min(set(range(len(operations))) - set(order))
    node = operations[number]
    written = {index for other in operations for index in other.outputs}
    never = [i for i in node.inputs if operands[i].lifetime in _WRITTEN and i not in written]
    where = f"operation {number} ({operation_name(node.type)})"
    if never:
        return bad_data(
            f"it reads operand {never[0]}, which nothing writes",
            where=where,
            fix="Give the operand a value, make it an input, or add the operation that writes it",
        )
    return bad_data("it waits for its own output, or that of others that wait for it", where=where)
