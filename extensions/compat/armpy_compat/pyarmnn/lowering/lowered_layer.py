"""One layer of a network that is built, on its way into an armpy.Network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import armpy
from armpy import ops
from armpy.graph import Value
from armpy_compat.pyarmnn.conversion import to_armpy
from armpy_compat.pyarmnn.layers import IConnectableLayer
from armpy_compat.pyarmnn.tensors import ConstTensor

Array = npt.NDArray[Any]  # Any: the type of the elements is in the TensorInfo


@dataclass(frozen=True, eq=False, slots=True)
class LoweredLayer:
    """One layer, with the values that it reads, and what is known of its outputs."""

    network: armpy.Network
    layer: IConnectableLayer
    inputs: Sequence[Value]
    outputs: Sequence[armpy.TensorInfo | None]
    """As they were set; None where they were not."""

    @property
    def descriptor(self) -> Any:  # Any: each kind of layer has its own
        """The layer's configuration."""
        return self.layer.descriptor

    @property
    def rank(self) -> int:
        """Number of dimensions of the first input."""
        return len(self.inputs[0].info.known_shape)

    def inferred(self, index: int = 0) -> armpy.TensorInfo | None:
        """Type and quantisation of an output, whose shape follows from the inputs."""
        info = self.outputs[index]
        return None if info is None else info.with_shape(None)

    def add(self, operation: ops.Operation, *inputs: Value | None, name: str = "") -> Value:
        """Add an operation that is not the layer's last one."""
        return self.network.add(operation, *inputs, name=self._named(name or operation.name))

    def result(self, operation: ops.Operation, *inputs: Value | None) -> list[Value]:
        """Add the operation whose only output is the layer's."""
        return [self.network.add(operation, *inputs, name=self.layer.name, output=self.inferred())]

    def results(self, operation: ops.Operation, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Add the operation whose outputs are the layer's."""
        infos = [self.inferred(index) for index in range(len(self.outputs))]
        added = self.network.add_layer(operation, inputs, name=self.layer.name, outputs=infos)
        return added.outputs

    def constant(
        self, tensor: ConstTensor, change: Callable[[Array], Array] | None = None
    ) -> Value:
        """Add a constant, of the tensor's shape, or as `change` makes it."""
        info = to_armpy(tensor.GetInfo(), where=f"a constant of {self.layer.where}")
        data = tensor.get_memory_area().reshape(info.known_shape)
        return self.network.constant(
            data if change is None else np.ascontiguousarray(change(data)),
            data_type=info.data_type,
            quantization=info.quantization,
            name=self.layer.name,
        )

    def tensor(self, name: str) -> Value | None:
        """Add a constant that is part of the layer; None if it has none of that name."""
        given = self.layer.tensors.get(name)
        return None if given is None else self.constant(given)

    def permuted(self, value: Value, order: Sequence[int]) -> Value:
        """Bring dimensions into another order: a constant at once, others by a layer."""
        if value.data is None:
            return self.add(ops.Transpose(tuple(order)), value)
        info = value.info
        return self.network.constant(
            np.ascontiguousarray(value.data.transpose(order)),
            data_type=info.data_type,
            quantization=info.quantization,
            name=value.name,
        )

    def _named(self, what: str) -> str:
        return f"{self.layer.name}/{what}" if self.layer.name else ""


Lowering = Callable[[LoweredLayer], Sequence[Value]]
"""Adds what a layer computes, and gives the values of its outputs."""
