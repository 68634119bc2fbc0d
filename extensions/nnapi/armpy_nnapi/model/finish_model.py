"""Completion of a model: run order, validation, and removal of trailing defaults."""

from __future__ import annotations

from dataclasses import replace

from armpy.profiling import phase
from armpy_nnapi.description.model_description import ModelDescription, Subgraph
from armpy_nnapi.model.run_order import run_order
from armpy_nnapi.validation.described import FinishedModel
from armpy_nnapi.validation.trailing_defaults import without_trailing_defaults
from armpy_nnapi.validation.validate_model import check_operand_indexes, validate_model


def complete(description: ModelDescription) -> FinishedModel:
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
    return FinishedModel(without_trailing_defaults(description), order)


def _sorted(graph: Subgraph) -> tuple[Subgraph, tuple[int, ...]]:
    """A graph with its operations in an order in which they can run, and that order."""
    check_operand_indexes(graph)  # sorting follows them
    order = tuple(run_order(graph.operands, graph.operations))
    return replace(graph, operations=tuple(graph.operations[i] for i in order)), order
