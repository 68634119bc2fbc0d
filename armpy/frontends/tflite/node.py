"""One operator of a file, as the functions that convert operators see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader
from armpy.errors import ParserError
from armpy.frontends.tflite.reader import enumerators
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operation
from armpy.ops.quantizing import Cast, Dequantize
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

_FUSED_ACTIVATIONS = {
    0: FusedActivation.NONE,
    1: FusedActivation.RELU,
    2: FusedActivation.RELU1,
    3: FusedActivation.RELU6,
}


@dataclass(frozen=True, slots=True)
class BoundOperator:
    """One operator with its tensors in place."""

    network: Network  # the network under construction
    operator: str  # name in the schema's BuiltinOperator
    name: str  # of the layers that it becomes
    inputs: Sequence[Value | None]  # None for an optional tensor that is left out
    block_scales: Sequence[Value | None]  # of each input, where its blocks have scales of their own
    outputs: Sequence[TensorInfo]  # types and quantisations; shapes are inferred
    intermediates: Sequence[TensorInfo]  # tensors that exist only for their quantisation
    output_names: Sequence[str]
    table: TableReader  # the operator in the file
    # Builds a subgraph, given its index, for the shapes of its inputs.
    graph: Callable[[int, Sequence[Shape | None]], Graph]
    # Adds a subgraph's layers to the network, given its index and inputs, and returns its outputs.
    inline: Callable[[int, Sequence[Value | None]], Sequence[Value]]
    operators: Callable[[int], Sequence[str]]  # names of a subgraph's operators, given its index
    # Of the outputs as the file has them, for operators that have no other word of them.
    shapes: Sequence[tuple[int, ...] | None]
    updates: dict[int, Value] = field(default_factory=dict)  # values passed to `update_variable`

    def input(self, index: int) -> Value | None:
        """Return an input; None if it is left out, or past the end of the list."""
        return self.inputs[index] if index < len(self.inputs) else None

    def options(
        self,
        name: str,  # name of the table in the schema: ``Conv2DOptions``
        # The operator's field that has it; later ones are in ``BuiltinOptions2``.
        union: str = "BuiltinOptions",
    ) -> TableReader:
        """The operator's options; those that the file leaves out have their defaults.

        LiteRT does not look at the options of another operator either.
        """
        if self.table.union_kind(union) == name:
            return self.table.union(union, name)
        return self.table.defaults(name)

    def expect_outputs(self, count: int) -> None:
        """Check the number of outputs; raises ParserError if the file has more or fewer."""
        if len(self.outputs) != count:
            raise self.error(
                "the number of outputs is wrong",
                expected=str(count),
                actual=str(len(self.outputs)),
            )

    def layer(self, operation: Operation, *inputs: Value | None) -> Sequence[Value]:
        """Add the layer that the operator's outputs are the outputs of."""
        self.expect_outputs(operation.num_outputs)
        layer = self.network.add_layer(
            operation,
            inputs,
            name=self.name,
            outputs=self.outputs,
            output_names=self.output_names,
        )
        return layer.outputs

    def as_real(self, value: Value, data_type: DataType) -> Value:
        """A value as floats of a type; itself if it is of that type already."""
        stored = value.info.data_type
        if stored is data_type:
            return value
        layer = self.network.add_layer(
            Dequantize() if stored.is_quantized else Cast(),
            [value],
            name=f"{self.name}:real_{value.name}",
            outputs=[TensorInfo(value.info.shape, data_type)],
        )
        return layer.outputs[0]

    def update_variable(self, index: int, value: Value) -> None:
        """Set the contents of the variable tensor that is input number `index` from now on."""
        self.updates[index] = value

    def error(self, failed: str, *, expected: str = "", actual: str = "") -> ParserError:
        """An error about this operator."""
        return self.table.error(failed, expected=expected, actual=actual)


Converter: TypeAlias = Callable[[BoundOperator], Sequence[Value]]
"""Adds the layers of one operator and returns its outputs."""

ConverterTable: TypeAlias = Mapping[str, Converter]
"""Converters by the operators' names in the schema's BuiltinOperator."""


def direct(
    # The operation, or what makes it from the operator's options.
    operation: Operation | Callable[[BoundOperator], Operation],
) -> Converter:
    """Converter of an operator that is one operation with the same operands in the same order."""

    def convert(node: BoundOperator) -> Sequence[Value]:
        chosen = operation if isinstance(operation, Operation) else operation(node)
        return node.layer(chosen, *node.inputs)

    return convert


def fused_activation(options: TableReader) -> FusedActivation:
    """The activation that an operator's options name; NONE for others than bounds.

    LiteRT's kernels take an activation for the bounds of their results, and TANH has none.
    """
    activation = options.integer("FusedActivationFunction")
    return _FUSED_ACTIVATIONS.get(activation, FusedActivation.NONE)


def flat_bias(node: BoundOperator, index: int) -> Value | None:
    """A bias as a vector: LiteRT counts its elements, however a constant's shape has them."""
    bias = node.input(index)
    if bias is None or bias.data is None or bias.data.ndim == 1:
        return bias
    quantization = bias.info.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = replace(quantization, axis=0)
    return node.network.constant(
        bias.data.reshape(-1),
        name=bias.name,
        data_type=bias.info.data_type,
        quantization=quantization,
    )


def require_no_activation(options: TableReader) -> None:
    """Refuse an activation of an operator that TFLite computes none for.

    Raises
    ------
    ParserError
        If the options name one.
    """
    activation = options.integer("FusedActivationFunction")
    if activation:
        names = enumerators("ActivationFunctionType")
        raise options.error(
            "the operator cannot have a fused activation",
            expected="NONE",
            actual=names.get(activation, str(activation)),
        )
