"""Support queries: which operations of a model backends can run."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import ReasonCode, Support
from armpy.errors import ArmpyError
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
from armpy.runtime import Runtime
from armpy.types import REFERENCE_BACKEND_ID

_FROM_OUTSIDE = (
    Lifetime.TEMPORARY_VARIABLE,
    Lifetime.SUBGRAPH_INPUT,
    Lifetime.SUBGRAPH_OUTPUT,
)


def supported_operations(
    description: ModelDescription, runtime: Runtime, extensions: ExtensionLookup
) -> list[Support]:
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
    list of Support
        One per operation, with the reason where it is not supported.

    Notes
    -----
    Each operation is lowered by itself with what the model declares of its operands. Where
    that is not enough to know the layers, only CpuRef, which runs every operation of NNAPI,
    supports it. IF and WHILE are supported if everything in their models is: armpy runs them
    itself.
    """
    return _Inquiry(description, runtime, extensions).graph(description.main)


class _Inquiry:
    """Asks about the operations of a model's graphs, those of each referenced one once."""

    def __init__(
        self, description: ModelDescription, runtime: Runtime, extensions: ExtensionLookup
    ) -> None:
        self._description = description
        self._runtime = runtime
        self._extensions = extensions
        self._has_reference = REFERENCE_BACKEND_ID in runtime.get_device_spec().supported_backends
        self._referenced: dict[int, Support] = {}

    def graph(self, graph: Subgraph) -> list[Support]:
        """The answers for the operations of one graph."""
        return [self._operation(graph.operands, node) for node in graph.operations]

    def _operation(self, operands: Sequence[Operand], node: OperationNode) -> Support:
        """The answer for one operation."""
        if node.type == OperationCode.OEM_OPERATION:
            return Support.no(ReasonCode.OPERATION, "no backend has OEM operations")
        if node.type in CONTROL_FLOW_CODES:
            models = [operands[i] for i in node.inputs if operands[i].type == OperandCode.MODEL]
            answers = [self._reference(model.subgraph or 0) for model in models]
            return next((answer for answer in answers if not answer), Support.yes())
        # Not by asking it: shapes that are known in an execution only are no obstacle to it.
        if node.type in tuple(OperationCode) and self._has_reference:
            return Support.yes()
        try:
            return self._runtime.get_layer_support(self._lowered(operands, node))
        except ArmpyError as error:
            return Support.no(ReasonCode.OTHER, str(error))

    def _reference(self, index: int) -> Support:
        """Whether everything in a referenced graph is supported."""
        if index not in self._referenced:
            answers = self.graph(self._description.referenced[index])
            self._referenced[index] = next((a for a in answers if not a), Support.yes())
        return self._referenced[index]

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
