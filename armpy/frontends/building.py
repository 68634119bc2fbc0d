"""Adding layers to networks, for front-ends whose operators become several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.composite import LayerBuilder
from armpy.ops.operation import Operation, require
from armpy.ops.quantizing import Cast
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

_WIDER: Mapping[DataType, DataType] = {
    DataType.BFLOAT16: DataType.FLOAT32,
    DataType.FLOAT16: DataType.FLOAT32,
    DataType.FLOAT32: DataType.FLOAT64,
    DataType.BOOLEAN: DataType.UNSIGNED8,
    DataType.SIGNED8: DataType.SIGNED16,
    DataType.SIGNED16: DataType.SIGNED32,
    DataType.SIGNED32: DataType.SIGNED64,
    DataType.UNSIGNED8: DataType.SIGNED16,
    DataType.UNSIGNED16: DataType.SIGNED32,
    DataType.UNSIGNED32: DataType.SIGNED64,
}
"""The next type that holds every number of a type."""


class Layers:
    """Adds layers, with wider types where an operation does not take the given ones."""

    def __init__(self, build: LayerBuilder) -> None:
        self._build = build

    def constant(
        self,
        data: object,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant.

        Raises LayerValidationError if it is an integer that the type does not hold.
        """
        is_integer = data_type is not None and data_type.dtype.kind in "iu"
        if data_type is not None and is_integer and isinstance(data, (int, float)):
            low, high = data_type.integer_range
            require(
                low <= data <= high,
                f"a number is none of {data_type.name}",
                expected=f"{low} to {high}",
                actual=data,
            )
        # Floats beyond a narrower type are infinite.
        with np.errstate(over="ignore"):
            array = np.asarray(data, None if data_type is None else data_type.dtype)
        value: Value = self._build.constant(array, data_type, quantization)
        return value

    def like(self, value: Value, data: object) -> Value:
        """Add a constant of the type of another value.

        Raises LayerValidationError if it is an integer that the type does not hold.
        """
        data_type = value.info.data_type
        if data_type is DataType.BFLOAT16:
            return self.cast(self.constant(data, DataType.FLOAT32), data_type)
        return self.constant(data, data_type)

    def layer(
        self,
        operation: Operation,
        *inputs: Value | None,
        # Where type or quantisation do not follow from the inputs.
        output: TensorInfo | None = None,
    ) -> Value:
        """Add a layer with one output.

        Where the operation does not take elements of these types, it is computed with the next
        wider ones that it takes, and the output cast back.
        """
        (value,) = self.layers(operation, inputs, (output,))
        return value

    def layers(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
    ) -> tuple[Value, ...]:
        """Add a layer with any number of outputs; see `layer`."""
        wide = None if any(outputs) else _wide_types(operation, inputs)
        if wide is None:
            return self._build.add_layer(operation, inputs, outputs)
        back = {to: of for of, to in wide.items()}
        cast = [
            None if value is None else self.cast(value, wide.get(value.info.data_type))
            for value in inputs
        ]
        values = self._build.add_layer(operation, cast, ())
        return tuple(self.cast(value, back.get(value.info.data_type)) for value in values)

    def cast(self, value: Value, data_type: DataType | None) -> Value:
        """A value with its elements converted; itself if it is of that type, or None is given."""
        if data_type is None or value.info.data_type is data_type:
            return value
        (converted,) = self._build.add_layer(Cast(), (value,), (TensorInfo(None, data_type),))
        return converted  # type: ignore[no-any-return]  # the builder's values are the graph's


def _wide_types(
    operation: Operation, inputs: Sequence[Value | None]
) -> dict[DataType, DataType] | None:
    """The wider types with which an operation takes its inputs; None if it does as they are."""
    rules = operation.type_rules
    infos = [None if value is None else value.info for value in inputs]

    def takes(types: Mapping[DataType, DataType]) -> bool:
        return any(
            all(
                info is None
                or types.get(info.data_type, info.data_type)
                in rule.inputs[min(number, len(rule.inputs) - 1)]
                for number, info in enumerate(infos)
            )
            for rule in rules
        )

    first = next((info.data_type for info in infos if info is not None), None)
    if first is None or not rules or (operation.takes_elements(first) and takes({})):
        return None
    wide = _WIDER.get(first)
    while wide is not None:
        if operation.takes_elements(wide) and takes({first: wide}):
            return {first: wide}
        wide = _WIDER.get(wide)
    return None
