"""Support queries: which operations of a model backends can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from armpy.backend import ReasonCode, Support
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, LayerValidationError
from armpy.execution import Runtime
from armpy.ops.composite import Composite
from armpy.types import REFERENCE_BACKEND_ID
from armpy_nnapi.codes import (
    CONTROL_FLOW_CODES,
    LOWEST_FEATURE_LEVEL,
    OperandCode,
    OperationCode,
)
from armpy_nnapi.description.model_description import ModelDescription, Operand, OperationNode
from armpy_nnapi.extensions.extensions import ExtensionLookup
from armpy_nnapi.lowering.shapes import (
    FROM_OUTSIDE,
    Dimensions,
    learned,
    lowered_alone,
    made_dimensions,
)

Answer: TypeAlias = Support | None
"""The answer for an operation; None if it is known at execution only."""

RuntimeOfLevel: TypeAlias = Callable[[int], Runtime | None]
"""Gives the runtime of the devices that have a feature level; None if none has."""


@dataclass(frozen=True, slots=True)
class _StandIn:
    """Example of a size and rank for dimensions that a model leaves open; 0 for none."""

    size: int = 0
    rank: int = 0

    def fill(self, operand: Operand) -> Operand:
        """Fill an operand's open dimensions with the example."""
        if operand.is_fully_known or not self.size:
            return operand
        dimensions = operand.dimensions or (0,) * self.rank
        return replace(operand, dimensions=tuple(dim or self.size for dim in dimensions))


# In this order: most operations that take a single rank are for images.
_RANKS = (4, 2, 1, 3)
_SIZES = (1, 2, 24, 240)
"""One for batches and steps of time; larger ones with many divisors for images and groups."""

# Each is tried with every rank, so that many would make the question a long one.
_MAX_SIZES_DECLARED = 8


def supported_operations(
    description: ModelDescription,
    runtimes: RuntimeOfLevel,
    extensions: ExtensionLookup,
    levels: Sequence[Sequence[int]] | None = None,
) -> list[Answer]:
    """Ask devices which operations of the main graph they can run.

    Parameters
    ----------
    description : ModelDescription
        Valid.
    extensions : callable
        Gives the extensions of the devices.
    levels : sequence of sequence of int, optional
        Result of `armpy_nnapi.validation.versions.operation_levels`, if a device has not the latest
        level.

    Returns
    -------
    list of (Support or None)
        One per operation, with the reason where it is not supported; None where it is known at
        execution only, since shapes depend on elements that the model does not have.

    Notes
    -----
    A device is asked about the operations that its feature level has. Each is lowered by itself,
    with the shapes that those before it give to its operands. Where the model leaves dimensions
    open that way, backends are asked about examples of them: an operation is supported if it is
    for one. CpuRef runs every operation of NNAPI. IF and WHILE are supported if everything in
    their models is: armpy runs them itself.
    """
    answers: list[Answer] = [None] * len(description.main.operations)
    for stand_in in _stand_ins(description):
        inquiry = _Inquiry(description, runtimes, extensions, levels, stand_in)
        graph_answers, _ = inquiry.graph(0)
        answers = [
            # Yes beats no, and an answer beats none: one example that runs is enough.
            new if old is None or new else old
            for old, new in zip(answers, graph_answers, strict=True)
        ]
        # Every operation is supported for one example already; the others cannot change that.
        if all(answers):
            break
    return answers


def _stand_ins(description: ModelDescription) -> Iterator[_StandIn]:
    """Yield no example first, then those to try where dimensions are open."""
    # First without examples: known answers need none, and most models are of that kind.
    yield _StandIn()
    graphs = (description.main, *description.referenced)
    operands = [operand for graph in graphs for operand in graph.operands]
    if all(operand.is_fully_known for operand in operands):
        return
    inputs = [graph.operands[index] for graph in graphs for index in graph.inputs]
    declared = (dim for operand in operands for dim in operand.dimensions)
    more = [dim for dim in dict.fromkeys(declared) if dim and dim not in _SIZES]
    is_rank_open = any(not o.dimensions and o.is_tensor for o in inputs)
    ranks = _RANKS if is_rank_open else _RANKS[:1]
    for size, rank in product((*_SIZES, *more[:_MAX_SIZES_DECLARED]), ranks):
        yield _StandIn(size, rank)


class _Inquiry:
    """Asks about the operations of a model's graphs, those of each referenced one once."""

    def __init__(
        self,
        description: ModelDescription,
        runtimes: RuntimeOfLevel,
        extensions: ExtensionLookup,
        levels: Sequence[Sequence[int]] | None,
        stand_in: _StandIn,
    ) -> None:
        self._description = description
        self._graphs = (description.main, *description.referenced)
        self._runtimes = runtimes
        self._extensions = extensions
        self._levels = levels
        self._stand_in = stand_in
        self._referenced: dict[tuple[int, tuple[Dimensions, ...]], _Found] = {}

    def graph(self, index: int, given: Sequence[Dimensions] = ()) -> _Found:
        """The answers for the operations of one graph, and the dimensions of its outputs."""
        graph = self._graphs[index]
        operands = list(graph.operands)
        for i, dimensions in zip(graph.inputs, given, strict=False):
            operands[i] = learned(operands[i], dimensions)
        answers = []
        for number, node in enumerate(graph.operations):
            for i in node.inputs:
                if operands[i].lifetime in FROM_OUTSIDE:
                    operands[i] = self._stand_in.fill(operands[i])
            level = LOWEST_FEATURE_LEVEL if self._levels is None else self._levels[index][number]
            answer, shapes = self._operation(operands, node, level)
            answers.append(answer)
            # There are no shapes if the operation's are unknown.
            for i, dimensions in zip(node.outputs, shapes, strict=False):
                operands[i] = learned(operands[i], dimensions)
        return answers, [operands[i].dimensions for i in graph.outputs]

    def _operation(
        self, operands: Sequence[Operand], node: OperationNode, level: int
    ) -> tuple[Answer, list[Dimensions]]:
        """The answer for one operation, and its outputs' dimensions."""
        if node.type in CONTROL_FLOW_CODES:
            return self._control_flow(operands, node)
        runtime = self._runtimes(level)
        # Not by asking it: shapes that are known in an execution only do not prevent it.
        is_own = node.type in tuple(OperationCode) and node.type != OperationCode.OEM_OPERATION
        if is_own and runtime is not None and _has_reference(runtime):
            return Support.yes(), []
        try:
            alone = lowered_alone(self._description, operands, node, self._extensions)
            graph = specialize(alone)
            shapes = made_dimensions(graph, operands, node)
            if runtime is None:
                text = f"it is of feature level {level}, which no device has"
                return Support.no(ReasonCode.OPERATION, text), shapes
            # What stays composite waits for elements, so no backend can be asked about its layers
            # yet.
            if any(isinstance(layer.operation, Composite) for layer in graph.layers):
                return None, shapes
            return runtime.get_layer_support(graph), shapes
        except LayerValidationError as error:
            # An example that breaks the operation's rules says nothing of others.
            refusal = Support.no(ReasonCode.OTHER, str(error))
            return (None if self._stand_in.size else refusal), []
        except ArmpyError as error:
            return Support.no(ReasonCode.OTHER, str(error)), []

    def _control_flow(
        self, operands: Sequence[Operand], node: OperationNode
    ) -> tuple[Answer, list[Dimensions]]:
        """The answer for IF or WHILE: that for everything in their models."""
        models = [operands[i] for i in node.inputs if operands[i].type == OperandCode.MODEL]
        first = 3 if node.type == OperationCode.IF else 2
        dimensions = tuple(operands[index].dimensions for index in node.inputs[first:])
        graph_answers = [self._reference(model.subgraph or 0, dimensions) for model in models]
        answers = [answer for inner, _ in graph_answers for answer in inner]
        refusals = [answer for answer in answers if answer is not None and not answer]
        if refusals:
            return refusals[0], []
        # The models of an IF, and the body of a WHILE, have the operation's outputs.
        shapes = (
            graph_answers[-1][1]
            if node.type == OperationCode.WHILE or _agree(graph_answers)
            else []
        )
        return (None if None in answers else Support.yes()), shapes

    def _reference(self, index: int, dimensions: tuple[Dimensions, ...]) -> _Found:
        """The answers for a referenced graph."""
        # Given dimensions are part of the key, as they decide the operations inside.
        key = index, dimensions
        if key not in self._referenced:
            self._referenced[key] = self.graph(1 + index, dimensions)
        return self._referenced[key]


def _has_reference(runtime: Runtime) -> bool:
    """Return whether CpuRef is among the backends."""
    return REFERENCE_BACKEND_ID in runtime.get_device_spec().supported_backends


_Found: TypeAlias = tuple[list[Answer], list[Dimensions]]


def _agree(graph_answers: Sequence[_Found]) -> bool:
    """Return whether graphs give outputs of the same dimensions."""
    return all(shapes == graph_answers[0][1] for _, shapes in graph_answers)
