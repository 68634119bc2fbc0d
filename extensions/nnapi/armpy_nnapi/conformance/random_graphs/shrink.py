"""Makes a failing model smaller while it goes on failing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    OperationNode,
    Subgraph,
)


@dataclass(frozen=True, slots=True)
class ModelPart:
    """Some operations of a model as a model of their own."""

    description: ModelDescription
    inputs: tuple[Array, ...]


def with_all_outputs(description: ModelDescription) -> ModelDescription:
    """The same model with every tensor that an operation gives among its outputs."""
    main = description.main
    indexes = [index for node in main.operations for index in node.outputs]
    operands = list(main.operands)
    for index in indexes:
        operands[index] = replace(operands[index], lifetime=Lifetime.SUBGRAPH_OUTPUT)
    graph = replace(main, operands=tuple(operands), outputs=tuple(indexes))
    return replace(description, main=graph)


def part_of(
    description: ModelDescription,
    nodes: Sequence[OperationNode],
    elements: dict[int, Array],
) -> ModelPart:
    """Some operations of a model; the outputs of the others become inputs.

    Parameters
    ----------
    nodes : sequence of OperationNode
        Operations of the main graph, in its order.
    elements : dict of int to ndarray
        Elements of every tensor of the main graph that is not a constant.
    """
    main = description.main
    written = {index for node in nodes for index in node.outputs}
    read = {index for node in nodes for index in node.inputs}
    used = sorted(written | read)
    position = {old: new for new, old in enumerate(used)}
    operands = []
    inputs: list[int] = []
    outputs: list[int] = []
    for old in used:
        operand = main.operands[old]
        if old in written:
            is_result = old not in read
            lifetime = Lifetime.SUBGRAPH_OUTPUT if is_result else Lifetime.TEMPORARY_VARIABLE
            operand = replace(operand, lifetime=lifetime)
            if is_result:
                outputs.append(position[old])
        elif old in elements:
            shape = elements[old].shape
            operand = replace(operand, lifetime=Lifetime.SUBGRAPH_INPUT, dimensions=shape)
            inputs.append(position[old])
        operands.append(operand)
    graph = Subgraph(
        tuple(operands),
        tuple(
            OperationNode(
                node.type,
                tuple(position[index] for index in node.inputs),
                tuple(position[index] for index in node.outputs),
            )
            for node in nodes
        ),
        tuple(inputs),
        tuple(outputs),
    )
    arrays = tuple(elements[used[index]] for index in inputs)
    return ModelPart(replace(description, main=graph), arrays)


def shrink(
    description: ModelDescription,
    elements: dict[int, Array],
    fails: Callable[[ModelPart], bool],
) -> ModelPart | None:
    """Find a part of a failing model that is as small as can be and fails by itself.

    Parameters
    ----------
    elements : dict of int to ndarray
        Right elements of every tensor of the main graph that is not a constant.
    fails : callable
        Whether a part fails.

    Returns
    -------
    ModelPart or None
        The part that fails; None if no part fails by itself, not even the whole.

    Notes
    -----
    Each operation alone is tried first, which is nearly always enough; then operations are
    taken out one by one as long as the rest fails.
    """
    nodes = list(description.main.operations)
    for node in nodes:
        alone = part_of(description, [node], elements)
        if fails(alone):
            return alone
    smallest = part_of(description, nodes, elements)
    if not fails(smallest):
        return None
    for node in list(nodes):
        fewer = [other for other in nodes if other is not node]
        if not fewer:
            break
        part = part_of(description, fewer, elements)
        if fails(part):
            nodes, smallest = fewer, part
    return smallest
