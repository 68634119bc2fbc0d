"""Feature levels: the one that a model needs, and conversion to lower ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import (
    LATEST_FEATURE_LEVEL,
    FeatureLevel,
)
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.validation.described import IModel, described
from armpy_nnapi.validation.trailing_defaults import without_trailing_defaults
from armpy_nnapi.validation.validate_model import validate_operation


def minimum_feature_level(model: IModel | ModelDescription) -> int:
    """Find the lowest feature level that has everything in a model.

    Parameters
    ----------
    model : Model or ModelDescription
        Finished, or valid.

    Returns
    -------
    int
        A `FeatureLevel`. Operands that no operation uses do not count. Trailing arguments do,
        even if they say what is meant without them too; a model that `Model.finish` made has
        none of these.

    Raises
    ------
    NnapiError
        BAD_DATA if the model is not valid.

    References
    ----------
    NNAPI ``compliantWithV1_0`` to ``compliantWithV1_3``.
    """
    description = described(model, "minimum_feature_level")
    return max(
        (
            _node_feature_level(node, graph, description)
            for graph in (description.main, *description.referenced)
            for node in graph.operations
        ),
        default=int(FeatureLevel.LEVEL_1),
    )


def _node_feature_level(node: OperationNode, graph: Subgraph, description: ModelDescription) -> int:
    return int(validate_operation(node, graph.operands, description.referenced))


def convert(description: ModelDescription, feature_level: int) -> ModelDescription:
    """Convert a model to a feature level.

    Raises
    ------
    NnapiError
        OP_FAILED if the model needs more than the level has.

    Notes
    -----
    Trailing arguments with default values are left out, and operands that
    nothing uses. The lowest level cannot say that float32 may be computed as float16, so that
    is dropped for it.

    References
    ----------
    NNAPI ``convertToV1_0`` to ``convertToV1_3``.
    """
    # First: a default that is spelt out may need a newer level than the operation.
    shortened = without_trailing_defaults(description)
    needed = minimum_feature_level(shortened)
    if needed > feature_level:
        raise NnapiError(
            "the model cannot be converted",
            code=ResultCode.OP_FAILED,
            where="model",
            expected=f"one of feature level {int(feature_level)}",
            actual=f"one that needs {int(needed)}",
        )
    return replace(
        shortened,
        main=_without_unused(shortened.main),
        referenced=tuple(map(_without_unused, shortened.referenced)),
        # Level 27 cannot say it, and computes float32 exactly.
        relaxed=shortened.relaxed and feature_level >= FeatureLevel.LEVEL_2,
    )


def _without_unused(graph: Subgraph) -> Subgraph:
    """A graph without the operands that nothing uses, whose types may be too new."""
    used = {index for node in graph.operations for index in (*node.inputs, *node.outputs)}
    # In their old order, so that dumps of the two models can be compared.
    kept_indexes = sorted(used.union(graph.inputs, graph.outputs))
    number_of = {index: number for number, index in enumerate(kept_indexes)}

    def renumbered(indexes: Sequence[int]) -> tuple[int, ...]:
        return tuple(number_of[index] for index in indexes)

    return Subgraph(
        tuple(graph.operands[index] for index in kept_indexes),
        tuple(
            OperationNode(node.type, renumbered(node.inputs), renumbered(node.outputs))
            for node in graph.operations
        ),
        renumbered(graph.inputs),
        renumbered(graph.outputs),
    )


@dataclass(frozen=True, slots=True)
class ModelSlice:
    """The part of a model that a feature level has."""

    description: ModelDescription
    operations: tuple[int, ...]
    """Number in the model's main graph of each of the slice's operations."""


def compliant_slice(model: IModel | ModelDescription, feature_level: int) -> ModelSlice | None:
    """Cut out the part of a model that a device of some feature level can be asked about.

    Parameters
    ----------
    model : Model or ModelDescription
        Finished, or valid.

    Returns
    -------
    ModelSlice or None
        The slice; None if no operation is left, or the rest has no output.

    Notes
    -----
    What an operation that is left out would have written becomes an input of the slice, and
    what only such operations read becomes an output. Inputs of the same type are one: the
    slice is there to be asked about, not to be run.

    References
    ----------
    NNAPI ``MetaModel``.
    """
    description = described(model, "compliant_slice")
    numbers = [
        number
        for number, node in enumerate(description.main.operations)
        if _node_feature_level(node, description.main, description) <= feature_level
    ]
    if len(numbers) == len(description.main.operations):
        return ModelSlice(description, tuple(numbers))
    if not numbers:
        return None
    main = _Slicer(description.main, numbers).slice()
    has_control_flow = any(operand.subgraph is not None for operand in main.operands)
    sliced = replace(
        description, main=main, referenced=description.referenced if has_control_flow else ()
    )
    # A graph without outputs is not valid, and no device can be asked about it.
    return ModelSlice(sliced, tuple(numbers)) if main.outputs else None


Levels: TypeAlias = tuple[tuple[int, ...], ...]
"""Feature levels of the operations of a model's main graph, and then of each referenced one."""


def operation_levels(description: ModelDescription) -> Levels:
    """The feature level that a device must have to be asked about each operation.

    Parameters
    ----------
    description : ModelDescription
        Valid.

    Returns
    -------
    Levels
        Lowest level, by operation, whose slice of the graph has it.
    """
    graphs = (description.main, *description.referenced)
    return tuple(_graph_levels(replace(description, main=graph)) for graph in graphs)


def _graph_levels(own: ModelDescription) -> tuple[int, ...]:
    """The lowest level whose slice has each operation of the main graph."""
    levels = [int(LATEST_FEATURE_LEVEL)] * len(own.main.operations)
    # Downwards, so that the last level written is the lowest that has the operation.
    for level in sorted(FeatureLevel, reverse=True):
        part = compliant_slice(own, level)
        for number in () if part is None else part.operations:
            levels[number] = int(level)
    return tuple(levels)


class _Slicer:
    """Builds the graph of some operations of another graph."""

    def __init__(self, graph: Subgraph, kept: Sequence[int]) -> None:
        self._graph = graph
        self._nodes = [graph.operations[number] for number in kept]
        self._operands: list[Operand] = []
        self._numbers: dict[int, int] = {}
        self._inputs: dict[Operand, int] = {}

    def slice(self) -> Subgraph:
        """The graph of the operations."""
        written = {index for node in self._nodes for index in node.outputs}
        read = {index for node in self._nodes for index in node.inputs}
        outputs = []
        nodes = []
        for node in self._nodes:
            ins = tuple(self._input(index, index in written) for index in node.inputs)
            for index in node.outputs:
                operand = self._graph.operands[index]
                # Only operations that were left out read it: without readers it is a result.
                is_output = index not in read or operand.lifetime is Lifetime.SUBGRAPH_OUTPUT
                lifetime = Lifetime.SUBGRAPH_OUTPUT if is_output else operand.lifetime
                self._numbers[index] = self._add(replace(operand, lifetime=lifetime))
                if is_output:
                    outputs.append(self._numbers[index])
            nodes.append(replace(node, inputs=ins, outputs=self._mapped(node.outputs)))
        return Subgraph(
            tuple(self._operands), tuple(nodes), tuple(self._inputs.values()), tuple(outputs)
        )

    def _input(self, index: int, is_written: bool) -> int:
        """The slice's operand for one that an operation reads."""
        if index in self._numbers:
            return self._numbers[index]
        operand = self._graph.operands[index]
        comes_from_outside = operand.lifetime in (
            Lifetime.SUBGRAPH_INPUT,
            Lifetime.SUBGRAPH_OUTPUT,
            Lifetime.TEMPORARY_VARIABLE,
        )
        if is_written or not comes_from_outside:
            self._numbers[index] = self._add(operand)
            return self._numbers[index]
        as_input = replace(operand, lifetime=Lifetime.SUBGRAPH_INPUT)
        # Equal operands share an input, which keeps the slice small; it is never run.
        if as_input not in self._inputs:
            self._inputs[as_input] = self._add(as_input)
        self._numbers[index] = self._inputs[as_input]
        return self._numbers[index]

    def _add(self, operand: Operand) -> int:
        self._operands.append(operand)
        return len(self._operands) - 1

    def _mapped(self, indexes: Sequence[int]) -> tuple[int, ...]:
        """The slice's indexes of operands."""
        return tuple(self._numbers[index] for index in indexes)
