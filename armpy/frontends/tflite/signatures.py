"""The signatures of a model: names that its author gave to inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from armpy.errors import ParserError
from armpy.frontends.tflite.reader import TableReader


@dataclass(frozen=True, slots=True)
class TfliteSignature:
    """One way to call a model.

    Parameters
    ----------
    name : str
    subgraph : int
        Index of the subgraph that it calls.
    inputs, outputs : mapping of str to int
        Index of the tensor that each name stands for, in the file's order.
    is_main : bool
        Whether it calls the main subgraph with all of its inputs and outputs, in their order.
    """

    name: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    is_main: bool = False


def read_signatures(model: TableReader) -> dict[str, TfliteSignature]:
    """Every signature by its name, in the file's order.

    Raises
    ------
    ParserError
        If a name occurs twice.
    """
    found: dict[str, TfliteSignature] = {}
    for table in model.tables("SignatureDefs", "signature"):
        name = table.text("SignatureKey")
        table.where = f"signature '{name}'"
        if name in found:
            raise table.error("two signatures have this name")
        subgraph = table.integer("SubgraphIndex")
        names = _read_names(table, "Inputs"), _read_names(table, "Outputs")
        edges = [list(indexes.values()) for indexes in names]
        is_main = subgraph == 0 and edges == _main_edges(model)
        found[name] = TfliteSignature(name, subgraph, *names, is_main)
    return found


def _main_edges(model: TableReader) -> list[list[int]]:
    """Tensor indexes of the main subgraph's inputs, and of its outputs."""
    subgraphs = model.tables("Subgraphs", "subgraph")
    return [subgraphs[0].numbers(f) for f in ("Inputs", "Outputs")] if len(subgraphs) else []


def choose_signature(model: TableReader, name: str) -> TfliteSignature:
    """The signature of a name.

    Raises
    ------
    ParserError
        If there is none.
    """
    found = read_signatures(model)
    if name not in found:
        raise ParserError(
            f"the model has no signature '{name}'",
            expected=", ".join(f"'{known}'" for known in found) or "none, as it has no signatures",
        )
    return found[name]


def _read_names(signature: TableReader, field: str) -> dict[str, int]:
    """Tensor indexes by name."""
    names: dict[str, int] = {}
    for table in signature.tables(field, f"{signature.where} {field.lower()}"):
        name = table.text("Name")
        if name in names:
            raise signature.error(f"two {field.lower()} have the name '{name}'")
        names[name] = table.integer("TensorIndex")
    return names
