"""Completion of a model: run order, validation, and removal of trailing defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

from armpy.nnapi.description.model_description import ModelDescription, Subgraph
from armpy.nnapi.model.run_order import run_order
from armpy.nnapi.model.trailing_defaults import without_trailing_defaults
from armpy.nnapi.model.validation import check_operand_indexes, validate_model
from armpy.profiling import phase


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished model.

    Parameters
    ----------
    description : ModelDescription
        Valid, its operations in an order in which they can run.
    order : tuple of int
        For each of the main graph's operations, which one it was before.
    """

    description: ModelDescription
    order: tuple[int, ...]


def complete(description: ModelDescription) -> Completed:
    """Sort, check and simplify a model.

    Raises
    ------
    NnapiError
        BAD_DATA if it is not valid.

    References
    ----------
    NNAPI ``ModelBuilder::finish``.
    """
    # As in `ModelBuilder::finish`, order comes before validity: operations may be added in any
    # order, while a valid model writes each operand before it is read.
    main, order = _sorted(description.main)
    referenced = tuple(_sorted(graph)[0] for graph in description.referenced)
    description = replace(description, main=main, referenced=referenced)
    with phase("validate"):
        validate_model(description)
    # Last, as only a valid operation has a form that says which inputs have defaults.
    return Completed(without_trailing_defaults(description), order)


def _sorted(graph: Subgraph) -> tuple[Subgraph, tuple[int, ...]]:
    """A graph with its operations in an order in which they can run, and that order."""
    check_operand_indexes(graph)  # sorting follows them
    order = tuple(run_order(graph.operands, graph.operations))
    return replace(graph, operations=tuple(graph.operations[i] for i in order)), order
