"""One conformance case: a layer, its inputs, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy_conformance.description import describe


@dataclass(frozen=True, eq=False, slots=True)
class CaseInput:
    """One input of a case's layer."""

    info: TensorInfo
    elements: Array | Callable[[], Array]
    """ndarray, dtype and shape of `info`; or what makes it, as most backends refuse most cases."""
    is_constant: bool = False
    """Whether the network holds it; it is given at each execution otherwise."""

    @property
    def data(self) -> Array:
        """The elements."""
        return self.elements() if callable(self.elements) else self.elements

    def __reduce__(self) -> tuple[type[CaseInput], tuple[object, ...]]:
        """Pickle the elements and not what makes them."""
        return CaseInput, (self.info, self.data, self.is_constant)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A layer in front of a case's layer or after it, for backends that do not run it alone."""

    name: str  # for people
    add: Callable[[Network, Value], Value]
    """Adds the layer to a network and returns a value of the same shape, type and quantisation as
    the one that it reads; raises an `ArmpyError` if there is none.
    """


LAYER = "layer"
"""Name of the layer that a case is about."""


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A network of one layer with inputs."""

    id: str  # ``Operation/special property/data types``; unique, and the same in every run
    operation: Operation
    inputs: tuple[CaseInput | None, ...]  # None for an optional operand that is left out
    outputs: tuple[TensorInfo, ...]
    expected: tuple[Array, ...] | None = None
    """Outputs that were worked out by hand or follow from the operation's description; CpuRef says
    them where this is None.
    """
    again: tuple[Array, ...] | None = None
    """Inputs of the second execution, where the first ones in reverse order would not do."""
    define: Callable[[Case], Case] | None = None
    """Finds the expected outputs when the case is judged: most backends refuse most cases."""
    is_exact: bool = False
    """Whether elements have to be equal: each step of the definition is exact for these inputs."""
    # Layers before the first input that is given at run time, and after the first output.
    front: Neighbour | None = None
    after: Neighbour | None = None

    def defined(self) -> Case:
        """The case with its expected outputs, where more than CpuRef says them."""
        return self if self.define is None else self.define(self)

    def changed(self, **changes: Any) -> Case:
        """A copy with other attributes, whose outputs CpuRef says."""
        return replace(self, expected=None, define=None, **changes)

    @property
    def data_type(self) -> str:
        """Name of the type that stands for the case in tables: the first input's."""
        infos = [item.info for item in self.inputs if item is not None] or list(self.outputs)
        return infos[0].data_type.name

    @property
    def neighbours(self) -> str:
        """Describe the layers before and after the layer, in words."""
        places = ((self.front, "before"), (self.after, "after"))
        return " and ".join(
            f"{neighbour.name} {where}" for neighbour, where in places if neighbour is not None
        )

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
        for number, value in enumerate(self.add_to(net, values)):
            net.output(f"output_{number}", value)
        return net.build()

    def add_to(
        self, net: Network, values: Sequence[Value | None], name: str = LAYER
    ) -> tuple[Value, ...]:
        """Add the layer, with its neighbours, to a network; return its outputs.

        Parameters
        ----------
        values : sequence of (Value or None)
            One per input.
        name : str
            Of the layer.
        """
        values = list(values)
        entry = next((i for i, v in enumerate(values) if v is not None and v.data is None), None)
        if self.front is not None and entry is not None:
            values[entry] = self.front.add(net, values[entry])  # type: ignore[arg-type]  # not None
        values_out = net.add_layer(self.operation, values, name=name, outputs=self.outputs).outputs
        if self.after is None:
            return values_out
        return (self.after.add(net, values_out[0]), *values_out[1:])

    def feeds(self) -> dict[str, Array]:
        """Fresh copies of an execution's inputs, by name."""
        return {
            self._name(index): item.data.copy()
            for index, item in enumerate(self.inputs)
            if item is not None and not item.is_constant
        }

    def feeds_again(self) -> dict[str, Array] | None:
        """Return the inputs of the second execution if the case has one."""
        if self.again is None:
            return None
        return {self._name(index): array.copy() for index, array in enumerate(self.again)}

    def _name(self, index: int) -> str:
        return f"{index}_{self.operation.input_operand(index).name}"

    def __str__(self) -> str:
        shown = ", ".join("-" if item is None else str(item.info) for item in self.inputs)
        results = ", ".join(map(str, self.outputs))
        text = f"{describe(self.operation)} on ({shown}) -> ({results})"
        return f"{text} with {self.neighbours}" if self.neighbours else text
