"""Builders that add the layers of nodes, and name them."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType


class NamedBuilder:
    """Adds the layers of one node, named after it."""

    def __init__(self, build: LayerBuilder, name: str) -> None:
        self._build = build
        self._name = name

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer."""
        if isinstance(operation, Composite):
            name = self._name
        else:
            name = f"{self._name}/{name or operation.name}"
        return self._build.add_layer(operation, inputs, outputs, name)

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        value: Value = self._build.constant(data, data_type, quantization)
        return value
