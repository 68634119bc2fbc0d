"""Support queries: which operations of a model backends can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from armpy.backend import ReasonCode, Support
from armpy.errors import ArmpyError, LayerValidationError
from armpy.graph import Graph
from armpy.nnapi.codes import CONTROL_FLOW_CODES, OperandCode, OperationCode
from armpy.nnapi.extensions import ExtensionLookup
from armpy.nnapi.lowering import lower_model
from armpy.nnapi.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy.ops.composite import Composite
from armpy.optimizer import specialize
from armpy.records import dataclass
from armpy.runtime import Runtime
from armpy.types import REFERENCE_BACKEND_ID

_FROM_OUTSIDE = (
    Lifetime.TEMPORARY_VARIABLE,
    Lifetime.SUBGRAPH_INPUT,
    Lifetime.SUBGRAPH_OUTPUT,
)

Answer: TypeAlias = Support | None
"""What is said of an operation; None if that cannot be told before an execution."""

_Dimensions: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _StandIn:
    """What is asked about in the place of dimensions that a model leaves open; 0 is nothing."""

    size: int = 0
    rank: int = 0

    def fill(self, operand: Operand) -> Operand:
        """An operand without open dimensions, as far as there is something to put there."""
        if operand.is_fully_known or not self.size:
            return operand
        dimensions = operand.dimensions or (0,) * self.rank
        return replace(operand, dimensions=tuple(dim or self.size for dim in dimensions))


_RANKS = (4, 2, 1, 3)
_SIZES = (1, 2, 8, 64, 256)
"""One example for batches and steps of time; larger ones for images and what windows need."""

_MAX_SIZES_OF_CONSTANTS = 4


def supported_operations(
    description: ModelDescription, runtime: Runtime, extensions: ExtensionLookup
) -> list[Answer]:
    """Which operations of the main graph a runtime's backends can run.

    Parameters
    ----------
    description : ModelDescription
        Valid.
    runtime : Runtime
    extensions : callable
        Gives the extensions of the runtime's backends.

    Returns
    -------
    list of (Support or None)
        One per operation, with the reason where it is not supported; None where only an
        execution can tell, since shapes depend on elements that the model does not have.

    Notes
    -----
    Each operation is lowered by itself, with the shapes that those before it give to its operands.
    Where the model leaves dimensions open that way, backends are asked about examples of them: an
    operation is supported if it is for one. CpuRef runs every operation of NNAPI. IF and WHILE
    are supported if everything in their models is: armpy runs them itself.
    """
    answers: list[Answer] = [None] * len(description.main.operations)
    for stand_in in _stand_ins(description):
        inquiry = _Inquiry(description, runtime, extensions, stand_in)
        found, _ = inquiry.graph(description.main)
        answers = [
            new if old is None or new else old for old, new in zip(answers, found, strict=True)
        ]
        if all(answers):
            break
    return answers


def _stand_ins(description: ModelDescription) -> Iterator[_StandIn]:
    """Nothing, and then what is tried where dimensions are open."""
    yield _StandIn()
    graphs = (description.main, *description.referenced)
    operands = [operand for graph in graphs for operand in graph.operands]
    if all(operand.is_fully_known for operand in operands):
        return
    inputs = [graph.operands[index] for graph in graphs for index in graph.inputs]
    of_constants = (
        dim for operand in operands if operand.lifetime.is_constant for dim in operand.dimensions
    )
    more = [dim for dim in dict.fromkeys(of_constants) if dim not in _SIZES]
    is_rank_open = any(not o.dimensions and o.is_tensor for o in inputs)
    ranks = _RANKS if is_rank_open else _RANKS[:1]
    for size, rank in product((*_SIZES, *more[:_MAX_SIZES_OF_CONSTANTS]), ranks):
        yield _StandIn(size, rank)


class _Inquiry:
    """Asks about the operations of a model's graphs, those of each referenced one once."""

    def __init__(
        self,
        description: ModelDescription,
        runtime: Runtime,
        extensions: ExtensionLookup,
        stand_in: _StandIn,
    ) -> None:
        self._description = description
        self._runtime = runtime
        self._extensions = extensions
        self._stand_in = stand_in
        self._has_reference = REFERENCE_BACKEND_ID in runtime.get_device_spec().supported_backends
        self._referenced: dict[tuple[int, tuple[_Dimensions, ...]], _Found] = {}

    def graph(self, graph: Subgraph, given: Sequence[_Dimensions] = ()) -> _Found:
        """The answers for the operations of one graph, and the dimensions of its outputs."""
        operands = list(graph.operands)
        for index, dimensions in zip(graph.inputs, given, strict=False):
            operands[index] = _learned(operands[index], dimensions)
        answers = []
        for node in graph.operations:
            for index in node.inputs:
                if operands[index].lifetime in _FROM_OUTSIDE:
                    operands[index] = self._stand_in.fill(operands[index])
            answer, shapes = self._operation(operands, node)
            answers.append(answer)
            for index, dimensions in zip(node.outputs, shapes, strict=False):
                operands[index] = _learned(operands[index], dimensions)
        return answers, [operands[index].dimensions for index in graph.outputs]

    def _operation(
        self, operands: Sequence[Operand], node: OperationNode
    ) -> tuple[Answer, list[_Dimensions]]:
        """The answer for one operation, and what it says of its outputs' dimensions."""
        if node.type == OperationCode.OEM_OPERATION:
            return Support.no(ReasonCode.OPERATION, "no backend has OEM operations"), []
        if node.type in CONTROL_FLOW_CODES:
            return self._control_flow(operands, node)
        # Not by asking it: shapes that are known in an execution only are no obstacle to it.
        if node.type in tuple(OperationCode) and self._has_reference:
            return Support.yes(), []
        try:
            graph = specialize(self._lowered(operands, node))
            shapes = [
                _dimensions(value.info.shape, operands[index])
                for value, index in zip(graph.outputs, node.outputs, strict=True)
            ]
            if any(isinstance(layer.operation, Composite) for layer in graph.layers):
                return None, shapes
            return self._runtime.get_layer_support(graph), shapes
        except LayerValidationError as error:
            # An example that breaks the operation's rules says nothing of others.
            refusal = Support.no(ReasonCode.OTHER, str(error))
            return (None if self._stand_in.size else refusal), []
        except ArmpyError as error:
            return Support.no(ReasonCode.OTHER, str(error)), []

    def _control_flow(
        self, operands: Sequence[Operand], node: OperationNode
    ) -> tuple[Answer, list[_Dimensions]]:
        """The answer for IF or WHILE: that for everything in their models."""
        models = [operands[i] for i in node.inputs if operands[i].type == OperandCode.MODEL]
        first = 3 if node.type == OperationCode.IF else 2
        given = tuple(operands[index].dimensions for index in node.inputs[first:])
        found = [self._reference(model.subgraph or 0, given) for model in models]
        answers = [answer for inner, _ in found for answer in inner]
        refusals = [answer for answer in answers if answer is not None and not answer]
        if refusals:
            return refusals[0], []
        # The models of an IF, and the body of a WHILE, give what the operation gives.
        shapes = found[-1][1] if node.type == OperationCode.WHILE or _agree(found) else []
        return (None if None in answers else Support.yes()), shapes

    def _reference(self, index: int, given: tuple[_Dimensions, ...]) -> _Found:
        """The answers for a referenced graph."""
        key = index, given
        if key not in self._referenced:
            self._referenced[key] = self.graph(self._description.referenced[index], given)
        return self._referenced[key]

    def _lowered(self, operands: Sequence[Operand], node: OperationNode) -> Graph:
        """One operation as a graph of its own."""
        from_outside = dict.fromkeys(
            index for index in node.inputs if operands[index].lifetime in _FROM_OUTSIDE
        )
        alone = Subgraph(tuple(operands), (node,), tuple(from_outside), node.outputs)
        description = ModelDescription(
            alone,
            self._description.referenced,
            self._description.relaxed,
            self._description.extensions,
        )
        return lower_model(description, extensions=self._extensions)


_Found: TypeAlias = tuple[list[Answer], list[_Dimensions]]


def _agree(found: Sequence[_Found]) -> bool:
    """Whether graphs give outputs of the same dimensions."""
    return all(shapes == found[0][1] for _, shapes in found)


def _learned(operand: Operand, dimensions: _Dimensions) -> Operand:
    """An operand with what dimensions say beyond what the model declares."""
    own = operand.dimensions
    if not operand.is_tensor or (own and len(own) != len(dimensions)):
        return operand
    known = own or (0,) * len(dimensions)
    pairs = zip(known, dimensions, strict=True)
    return replace(operand, dimensions=tuple(mine or other for mine, other in pairs))


def _dimensions(shape: Sequence[int | None] | None, operand: Operand) -> _Dimensions:
    """A shape of the core as an operand's dimensions."""
    if shape is None:
        return ()
    rank = len(shape) - len(operand.element_shape)
    return tuple(dim or 0 for dim in shape[:rank])
