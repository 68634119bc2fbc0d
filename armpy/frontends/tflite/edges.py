"""Names of a network's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from armpy.errors import ParserError
from armpy.frontends.tflite.reader import TableReader
from armpy.frontends.tflite.tensors import Tensors

MAX_EDGE_TENSORS = 1024
"""Most inputs, or outputs, of a model; far more than any model has."""

Edge: TypeAlias = list[tuple[str, int]]
"""Name and tensor index of each input, or of each output."""


def tensor_edge(subgraph: TableReader, field: str, tensors: Tensors) -> Edge:
    """Inputs or outputs with their tensors' names, made unique.

    Parameters
    ----------
    field : str
        ``Inputs`` or ``Outputs``.
    """
    kind = field[:-1].lower()
    uses: dict[str, int] = {}
    return [
        (_unique(tensors[index].name or f"{kind}_{position}", uses), index)
        for position, index in enumerate(_indexes(subgraph, field))
    ]


def signature_edge(subgraph: TableReader, field: str, names: Mapping[str, int], where: str) -> Edge:
    """Inputs or outputs with the names that a signature gives them.

    Raises
    ------
    ParserError
        If the signature names another tensor, or leaves an input without a name.
    """
    indexes = _indexes(subgraph, field)
    positions = {index: position for position, index in enumerate(indexes)}
    for name, index in names.items():
        if index not in positions:
            raise ParserError(
                f"'{name}' is not one of the subgraph's {field.lower()}",
                where=where,
                expected=f"tensor {' or '.join(map(str, indexes)) or 'none'}",
                actual=str(index),
            )
    if field == "Inputs" and (missing := set(indexes) - set(names.values())):
        raise ParserError(
            "inputs of the subgraph have no name", where=where, actual=f"tensors {sorted(missing)}"
        )
    return sorted(names.items(), key=lambda item: positions[item[1]])


def _indexes(subgraph: TableReader, field: str) -> Sequence[int]:
    """Tensor indexes of the inputs or outputs."""
    indexes: list[int] = subgraph.numbers(field)
    if len(indexes) > MAX_EDGE_TENSORS:
        raise subgraph.error(
            f"there are too many {field.lower()}",
            expected=f"at most {MAX_EDGE_TENSORS}",
            actual=str(len(indexes)),
        )
    return indexes


def _unique(name: str, uses: dict[str, int]) -> str:
    """The name, with a number behind it if it has been used already."""
    unique = name
    while unique in uses:
        uses[name] += 1
        unique = f"{name}_{uses[name]}"
    uses[unique] = 0
    return unique
