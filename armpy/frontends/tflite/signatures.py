"""The signatures of a model: names that its author gave to inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader
from armpy.errors import ParserError, did_you_mean
from armpy.frontends.tflite.tensors import Tensors


@dataclass(frozen=True, slots=True)
class TfliteSignature:
    """One way to call a model."""

    name: str
    subgraph: int  # index of the subgraph that it calls
    # `inputs` and `outputs`: index of the tensor that each name stands for, in the file's order.
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    # Whether it calls the main subgraph with all of its inputs and outputs, in their order.
    is_main: bool = False


def read_signatures(model: TableReader) -> dict[str, TfliteSignature]:
    """Every signature by its name, in the file's order.

    Raises
    ------
    ParserError
        If a name occurs twice.
    """
    signatures: dict[str, TfliteSignature] = {}
    for table in model.tables("SignatureDefs", "signature"):
        name = table.text("SignatureKey")
        table.where = f"signature '{name}'"
        if name in signatures:
            raise table.error("two signatures have this name")
        subgraph = table.integer("SubgraphIndex")
        names = _read_names(table, "Inputs"), _read_names(table, "Outputs")
        edges = [list(indexes.values()) for indexes in names]
        is_main = subgraph == 0 and edges == _main_edges(model)
        signatures[name] = TfliteSignature(name, subgraph, *names, is_main)
    return signatures


def _main_edges(model: TableReader) -> list[list[int]]:
    """Tensor indexes of the main subgraph's inputs, and of its outputs."""
    subgraphs = model.tables("Subgraphs", "subgraph")
    return [subgraphs[0].numbers(f) for f in ("Inputs", "Outputs")] if len(subgraphs) else []


def choose_signature(model: TableReader, name: str) -> TfliteSignature:
    """The signature of a name; raises ParserError if there is none."""
    listed = read_signatures(model)
    if name not in listed:
        raise ParserError(
            f"the model has no signature '{name}'",
            expected=", ".join(f"'{known}'" for known in listed) or "none, as it has no signatures",
            fix=did_you_mean(name, listed, "Pass an expected name, or leave the signature out"),
        )
    return listed[name]


def _read_names(signature: TableReader, field: str) -> dict[str, int]:
    """Tensor indexes by name."""
    names: dict[str, int] = {}
    for table in signature.tables(field, f"{signature.where} {field.lower()}"):
        name = table.text("Name")
        if name in names:
            raise signature.error(f"two {field.lower()} have the name '{name}'")
        names[name] = table.integer("TensorIndex")
    return names


MAX_EDGE_TENSORS = 1024
"""Most inputs, or outputs, of a model; far more than any model has."""

Edge: TypeAlias = list[tuple[str, int]]
"""Name and tensor index of each input, or of each output."""


def tensor_edge(
    subgraph: TableReader,
    field: str,  # ``Inputs`` or ``Outputs``
    tensors: Tensors,
) -> Edge:
    """Inputs or outputs with their tensors' names, made unique."""
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
    """Return the name, with a number appended if it has been used already."""
    unique = name
    while unique in uses:
        uses[name] += 1
        unique = f"{name}_{uses[name]}"
    uses[unique] = 0
    return unique
