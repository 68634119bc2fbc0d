"""One conformance case: a layer, its inputs, and what must come out."""

from __future__ import annotations

import dataclasses
import enum

from armpy.graph import Graph, Value
from armpy.network import Network
from armpy.ops.operation import Array, Operation
from armpy.records import dataclass
from armpy.tensor import TensorInfo


@dataclass(frozen=True, eq=False, slots=True)
class CaseInput:
    """One input of a case's layer.

    Parameters
    ----------
    info : TensorInfo
    data : ndarray, dtype and shape of `info`
    is_constant : bool
        Whether the network holds it; it is given at each execution otherwise.
    """

    info: TensorInfo
    data: Array
    is_constant: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A network of one layer with inputs.

    Parameters
    ----------
    id : str
        ``Operation/what is special/data types``; unique, and the same in every run.
    operation : Operation
    inputs : tuple of (CaseInput or None)
        None for an optional operand that is left out.
    outputs : tuple of TensorInfo
    expected : tuple of ndarray, optional
        Outputs that were worked out by hand; CpuRef says them where this is None.
    """

    id: str
    operation: Operation
    inputs: tuple[CaseInput | None, ...]
    outputs: tuple[TensorInfo, ...]
    expected: tuple[Array, ...] | None = None

    @property
    def data_type(self) -> str:
        """Name of the type that stands for the case in tables: the first input's."""
        infos = [item.info for item in self.inputs if item is not None] or list(self.outputs)
        return infos[0].data_type.name

    def graph(self) -> Graph:
        """The network, with constants of its own; values are named after the operands."""
        net = Network(self.id)
        values: list[Value | None] = []
        for index, item in enumerate(self.inputs):
            if item is None:
                values.append(None)
            elif item.is_constant:
                info = item.info
                values.append(
                    net.constant(
                        item.data.copy(),
                        name=self._name(index),
                        data_type=info.data_type,
                        quantization=info.quantization,
                    )
                )
            else:
                values.append(net.input(self._name(index), item.info))
        layer = net.add_layer(self.operation, values, name="layer", outputs=self.outputs)
        for number, value in enumerate(layer.outputs):
            net.output(f"output_{number}", value)
        return net.build()

    def feeds(self) -> dict[str, Array]:
        """Fresh copies of what is given at an execution, by name."""
        return {
            self._name(index): item.data.copy()
            for index, item in enumerate(self.inputs)
            if item is not None and not item.is_constant
        }

    def _name(self, index: int) -> str:
        """Name of one input."""
        return f"{index}_{self.operation.input_operand(index).name}"

    def __str__(self) -> str:
        shown = ", ".join("-" if item is None else str(item.info) for item in self.inputs)
        results = ", ".join(map(str, self.outputs))
        return f"{describe(self.operation)} on ({shown}) -> ({results})"


def describe(operation: Operation) -> str:
    """An operation with those of its attributes that are not at their defaults."""
    shown = []
    for field in dataclasses.fields(operation):  # type: ignore[arg-type]  # subclasses are
        value = getattr(operation, field.name)
        if value != field.default:
            shown.append(f"{field.name}={value.name if isinstance(value, enum.Enum) else value}")
    return f"{operation.name}({', '.join(shown)})"
