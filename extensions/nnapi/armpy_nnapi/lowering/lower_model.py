"""Lowering of a model into a graph of armpy's own operations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from armpy.backend import OEM_EXTENSION
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError, LayerValidationError
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.control_flow import If, While
from armpy.ops.operation import Operation, require
from armpy.tensor import Shape, TensorInfo, shapes_agree
from armpy.types import DataType
from armpy_nnapi.codes import OperationCode, is_extension, operation_name
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.extensions.extensions import ExtensionLookup, no_extensions
from armpy_nnapi.extensions.operations import create_operation
from armpy_nnapi.operations import Arguments, OperationDefinition, definitions
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.results import as_bad_data
from armpy_nnapi.validation.versions import Levels


@dataclass(frozen=True, slots=True)
class NnapiOperation(Composite):
    """An NNAPI operation whose shapes or parameters are not known yet."""

    definition: OperationDefinition
    arguments: Arguments  # its operands as the model declares them

    @property
    def name(self) -> str:
        """NNAPI's name of the operation."""
        return self.definition.name

    @property
    def num_outputs(self) -> int:
        """One per output operand."""
        return len(self.arguments.outputs)

    def decides(self, index: int) -> bool:
        """Return whether the definition needs the elements of an input."""
        # The core waits for these elements, and expands the operation when they are known.
        return self.arguments.match.decides(index)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Shapes that the model declares."""
        return tuple(operand.shape for operand in self.arguments.outputs)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types that the model declares."""
        return tuple(operand.data_type for operand in self.arguments.outputs)

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Lower the operation, and check its outputs against the model's declarations."""
        lowering = LoweringContext(build, self.arguments, inputs, self.definition.default)
        # Only now every shape is known: a model may leave ranks and dimensions open.
        _check_inputs(self.definition, lowering)
        lowered = self.definition.lower(lowering)
        outputs: Sequence[Value] = lowered if isinstance(lowered, Sequence) else (lowered,)
        # A definition that is wrong about its output would otherwise fail at a reader of it.
        for operand, value in zip(self.arguments.outputs, outputs, strict=True):
            _check_output(operand, value.info)
        return outputs


def _check_inputs(definition: OperationDefinition, lowering: LoweringContext) -> None:
    """Check required values, ranks and sizes of 0, now that shapes are known."""
    for argument in lowering.arguments.match.inputs:
        for value in lowering.values(argument.name):
            if value is None:
                require(
                    argument.optional,
                    f"{argument.name} has no value",
                    fix="Only optional operands may be left out",
                )
                continue
            shape = value.info.known_shape
            require(
                not argument.ranks or len(shape) in argument.ranks,
                f"'{argument.name}' has the wrong rank",
                expected="rank " + " or ".join(map(str, argument.ranks)),
                actual=shape,
            )
            require(
                definition.allows_zero_sized or 0 not in shape,
                f"{argument.name} has no elements, which {definition.name} does not support",
                expected="sizes of 1 or more",
                actual=shape,
            )


def _check_output(operand: Operand, info: TensorInfo) -> None:
    """Check an output against the model's declaration."""
    declared = operand.info
    require(
        # Dimensions that the model leaves open agree with any.
        shapes_agree(declared.shape, info.shape),
        "the output's dimensions are not those that the model declares",
        expected=str(declared),
        actual=str(info),
    )
    require(
        declared.data_type is info.data_type
        and (
            # NNAPI compares it of outputs alone, which the application reads.
            operand.lifetime is not Lifetime.SUBGRAPH_OUTPUT
            or not info.data_type.is_quantized
            or declared.quantization == info.quantization
        ),
        "the output's type or quantisation is not the one that the model declares",
        expected=str(declared),
        actual=str(info),
    )


def lower_model(
    description: ModelDescription,
    omitted: Collection[int] = (),
    name: str = "model",
    *,
    extensions: ExtensionLookup = no_extensions,
) -> Graph:
    """Lower a valid model to a graph.

    Parameters
    ----------
    description : ModelDescription
        Valid, see `armpy_nnapi.validation.validate_model`.
    omitted : collection of int
        Positions of the model's inputs that have no value; the graph goes without them.
    name : str
        Name of the model, for messages.
    extensions : callable
        Gives the vendor extension of a name, see
        `armpy_nnapi.extensions.extensions.TypeManager.lookup`.

    Returns
    -------
    Graph
        Graph with inputs ``input0``, ... and outputs ``output0``, ... named by their positions.

    Raises
    ------
    LayerValidationError
        If the known properties of an operation's operands break a rule.
    NnapiError
        BAD_DATA if an operation belongs to an unknown extension, or the extension
        does not take its operands.
    """
    require(
        len(description.main.outputs) > 0,
        "the model has no outputs, so there is nothing to run",
        fix="Name one at least with identify_inputs_and_outputs",
    )
    return _ModelLowerer(description, extensions).lower(description.main, name, omitted)


def layer_name(node: OperationNode, number: int) -> str:
    """Name of the layer that one of NNAPI's own operations becomes, by its number in its graph."""
    return f"{OperationCode(node.type).name}_{number}"


def layer_levels(description: ModelDescription, levels: Levels) -> dict[str, int]:
    """The feature level that a device must have to be given each layer that a model becomes.

    Notes
    -----
    Layers are known by name. Of those of the same name in several graphs, as many as there are of
    one operation in one place, the highest level counts.
    """
    by_name: dict[str, int] = {}
    graphs = (description.main, *description.referenced)
    for graph, graph_levels in zip(graphs, levels, strict=True):
        for number, (node, level) in enumerate(zip(graph.operations, graph_levels, strict=True)):
            if not _is_vendors(node.type):  # who has the extension has its operations
                name = layer_name(node, number)
                by_name[name] = max(level, by_name.get(name, 0))
    return by_name


def _is_vendors(code: int) -> bool:
    """Return whether an operation is a vendor's: of an extension, or ``OEM_OPERATION``."""
    return is_extension(code) or code == OperationCode.OEM_OPERATION


class _ModelLowerer:
    """Lowers the graphs of one model, each referenced one once for the inputs it goes without."""

    def __init__(self, description: ModelDescription, extensions: ExtensionLookup) -> None:
        self._description = description
        self._extensions = extensions
        self._referenced: dict[tuple[int, tuple[int, ...]], Graph] = {}

    def lower(self, subgraph: Subgraph, name: str, omitted: Collection[int] = ()) -> Graph:
        net = Network(name)
        values: dict[int, Value | None] = {}
        for position, index in enumerate(subgraph.inputs):
            info = subgraph.operands[index].info
            values[index] = None if position in omitted else net.input(f"input{position}", info)
        for number, node in enumerate(subgraph.operations):
            for index in node.inputs:
                # Constants are added where they are first read, each once.
                if index not in values:
                    values[index] = self._constant(net, subgraph.operands[index])
            outputs = self._operation(net, subgraph, node, number, values)
            values.update(zip(node.outputs, outputs, strict=True))
        for position, index in enumerate(subgraph.outputs):
            # Validation has made sure that an operation writes every output.
            net.output(f"output{position}", values[index])  # type: ignore[arg-type]  # written
        return net.build()

    def _constant(self, net: Network, operand: Operand) -> Value | None:
        """The value of a constant operand; None for one without a value, and for a model."""
        data = operand.elements
        if data is None:
            return None
        return net.constant(data, data_type=operand.data_type, quantization=operand.quantization)

    def _operation(
        self,
        net: Network,
        subgraph: Subgraph,
        node: OperationNode,
        number: int,
        values: dict[int, Value | None],
    ) -> Sequence[Value]:
        ins = [subgraph.operands[index] for index in node.inputs]
        outs = [subgraph.operands[index] for index in node.outputs]
        inputs = [values[index] for index in node.inputs]
        if _is_vendors(node.type):
            return self._extension_operation(net, node.type, ins, outs, inputs, number)
        operation: Operation
        # What an IF or WHILE goes without, its models go without, too.
        if node.type == OperationCode.IF:
            omitted, call_inputs = _parted(inputs[3:])
            operation = If(self._graph(ins[1], omitted), self._graph(ins[2], omitted))
            inputs = [inputs[0], *call_inputs]
        elif node.type == OperationCode.WHILE:
            omitted, inputs = _parted(inputs[2:])
            # Both models are lowered for the same inputs, as they are handed the same values.
            body = self._graph(ins[1], omitted)
            _check_carried(omitted, len(body.outputs), number)
            operation = While(self._graph(ins[0], omitted), body)
        else:
            definition = _definition(node.type)
            arguments = Arguments(definition.match(ins, outs), ins, outs)
            operation = NnapiOperation(definition, arguments)
        label = layer_name(node, number)
        infos = [operand.info for operand in outs]
        layer = net.add_layer(operation, inputs, name=label, outputs=infos)
        return layer.outputs[: len(outs)]

    def _extension_operation(
        self,
        net: Network,
        code: int,
        ins: Sequence[Operand],
        outs: Sequence[Operand],
        inputs: Sequence[Value | None],
        number: int,
    ) -> Sequence[Value]:
        """Add an operation of a vendor extension."""
        names = {0: OEM_EXTENSION, **self._description.extensions}
        # A vendor's code receives operands only, which therefore have to show omitted ones.
        operands_in = [
            replace(operand, lifetime=Lifetime.NO_VALUE) if value is None else operand
            for operand, value in zip(ins, inputs, strict=True)
        ]
        operation = create_operation(self._extensions, names, code, operands_in, outs)
        infos = [operand.info for operand in outs]
        label = f"{operation.name}_{number}"
        try:
            return net.add_layer(operation, inputs, name=label, outputs=infos).outputs
        except LayerValidationError as error:
            raise as_bad_data(error) from error

    def _graph(self, operand: Operand, omitted: tuple[int, ...]) -> Graph:
        """The graph that a MODEL operand stands for, without the inputs that have no value."""
        index = operand.subgraph
        if index is None:
            raise LayerValidationError("an operand that must be a model is not one")
        # A model that several operations refer to stays one graph: it is prepared once.
        key = index, omitted
        if key not in self._referenced:
            subgraph = self._description.referenced[index]
            self._referenced[key] = self.lower(subgraph, f"referenced_{index}", omitted)
        return self._referenced[key]


def _parted(values: Sequence[Value | None]) -> tuple[tuple[int, ...], list[Value | None]]:
    """Split values into the positions of those left out, and the others."""
    omitted = tuple(position for position, value in enumerate(values) if value is None)
    return omitted, [value for value in values if value is not None]


def _check_carried(omitted: tuple[int, ...], num_carried: int, number: int) -> None:
    """Check that no value which the loop's body changes is left out."""
    for position in omitted:
        if position < num_carried:
            raise LayerValidationError(
                f"carried value {position} has no value",
                where=f"WHILE_{number}",
                fix="Only inputs that the body does not change may be left out",
            )


def _definition(code: int) -> OperationDefinition:
    definition = definitions().get(code)
    if definition is None:
        raise BackendCapabilityError("no backend has this operation", where=operation_name(code))
    return definition
