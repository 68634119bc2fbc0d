"""Context of an operation's lowering: its operands by name, and where to add layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.ops.composite import LayerBuilder
from armpy.ops.operation import Array, Operation, require
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_nnapi.description.model_description import Lifetime, Operand
from armpy_nnapi.operations.form import Arguments

Number: TypeAlias = int | float | bool


class LoweringContext:
    """Context of a definition's `lower`: operands by name, and where to add layers.

    Parameters
    ----------
    arguments : Arguments
        Operands as the model declares them.
    inputs : sequence of (Value or None)
        One per input operand, fully shaped; None for those without a value.
    default_of : callable
        Gives the default of an argument, None if it has none.

    Notes
    -----
    Names are those of the definition's arguments. What goes wrong is a
    LayerValidationError; `armpy.ops.operation.require` helps to say why.
    """

    def __init__(
        self,
        build: LayerBuilder,
        arguments: Arguments,
        inputs: Sequence[Value | None],
        default_of: Callable[[str], object],
    ) -> None:
        self._build = build
        self.arguments = arguments
        self._default_of = default_of
        # Lists, as a variadic argument has several operands of one name.
        self._values: dict[str, list[Value | None]] = {}
        # Graphs drop omitted operands at the end; the match still counts them.
        values = [*inputs, *[None] * (len(self.arguments.inputs) - len(inputs))]
        for argument, value in zip(self.arguments.match.inputs, values, strict=True):
            self._values.setdefault(argument.name, []).append(value)

    def __contains__(self, name: str) -> bool:
        """Return whether an argument is there and has a value."""
        return any(value is not None for value in self._values.get(name, ()))

    def __getitem__(self, name: str) -> Value:
        """The value of an argument that is there."""
        # Exactly one: for several there is `all`.
        (value,) = self._values[name]
        if value is None:
            raise LayerValidationError(f"{name} has no value")
        return value

    def get(self, name: str) -> Value | None:
        """The value of an argument; None if it is not there."""
        return self._values.get(name, [None])[0]

    def values(self, name: str) -> Sequence[Value | None]:
        """The values of an argument, None in the place of each that is left out."""
        return self._values[name]

    def all(self, name: str) -> list[Value]:
        """The values of a variadic argument."""
        return [value for value in self._values[name] if value is not None]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an argument."""
        return self[name].info.known_shape

    def number(self, name: str) -> Number:
        """The value of a scalar; the argument's default if the form does not have it."""
        if name not in self._values:
            return self._default(name)
        array = self.array(name)
        require(array.size == 1, f"{name} is not one number", actual=array.shape)
        number: Number = array.reshape(()).item()
        return number

    def integer(self, name: str) -> int:
        """The value of an integer scalar."""
        return int(self.number(name))

    def _default(self, name: str) -> Number:
        """The default of an argument that the form does not have."""
        default = self._default_of(name)
        if default is None:
            raise LayerValidationError(f"{name} is neither given nor has it a default")
        return default  # type: ignore[return-value]  # a number by definition

    def array(self, name: str) -> Array:
        """The elements of a decisive argument."""
        data = self[name].data
        if data is None:
            raise LayerValidationError(f"the elements of {name} are not known")
        return data

    def integers(self, name: str) -> tuple[int, ...]:
        """The elements of a decisive argument, flat, as plain integers."""
        return tuple(int(item) for item in self.array(name).reshape(-1))

    def output_operand(self, index: int = 0) -> Operand:
        """The operand that the model declares for an output."""
        return self.arguments.outputs[index]

    def output_info(self, index: int = 0) -> TensorInfo:
        """Type, quantisation and declared shape of an output."""
        return self.output_operand(index).info

    def fixed_output(self, scale: float, zero_point: int, index: int = 0) -> TensorInfo:
        """Info of an output whose quantisation the operation prescribes.

        Raises
        ------
        LayerValidationError
            If the model declares another one for an output of the model.
        """
        operand = self.output_operand(index)
        info = operand.info
        if not info.data_type.is_quantized:
            return info
        # A temporary's declared quantisation is not visible; an output's decides how the
        # application reads the elements.
        require(
            operand.lifetime is not Lifetime.SUBGRAPH_OUTPUT
            or (
                np.float32(operand.scale) == np.float32(scale) and operand.zero_point == zero_point
            ),
            "the output has the wrong quantisation",
            expected=f"scale {scale:g} and zero point {zero_point}",
            actual=f"{operand.scale:g} and {operand.zero_point}",
        )
        return TensorInfo(info.shape, info.data_type, Quantization.per_tensor(scale, zero_point))

    def add(
        self, operation: Operation, *inputs: Value | None, output: TensorInfo | None = None
    ) -> Value:
        """Add a layer with one output.

        Parameters
        ----------
        output : TensorInfo, optional
            The operation's declared output if left out; give it for layers in between.
        """
        info = self.output_info() if output is None else output
        (output_value,) = self._build.add_layer(operation, inputs, (info,))
        return output_value  # type: ignore[no-any-return]  # the builder's values are the graph's

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] | None = None,
    ) -> tuple[Value, ...]:
        """Add a layer with any number of outputs, the operation's declared ones if left out."""
        infos = [operand.info for operand in self.arguments.outputs] if outputs is None else outputs
        return self._build.add_layer(operation, inputs, infos)

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        return self._build.constant(data, data_type, quantization)  # type: ignore[no-any-return]
