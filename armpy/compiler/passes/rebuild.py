"""Rebuilding a graph: a forward walk that adds each layer again, or something in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

import numpy as np

from armpy.compiler.specialization import remove_dead
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, Value
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Array, Operation, located
from armpy.tensor import TensorInfo


class Rebuild:
    """A graph in the making that stands for another one.

    Parameters
    ----------
    graph : Graph
        What is rebuilt. Inputs, variables, and the names of outputs stay.

    Examples
    --------
    A pass that leaves out every layer that changes nothing::

        def drop_identities(graph, context):
            rebuild = Rebuild(graph)
            for layer in graph.layers:
                if is_identity(layer):
                    rebuild.alias(layer.output, rebuild.mapped(layer["input"]))
                else:
                    rebuild.keep(layer)
            return rebuild.finish()

    Notes
    -----
    Every layer that is changed, or that reads something else, is inferred and checked again; the
    others are the same objects in both graphs. Layers that nothing reads any more are left out at
    the end.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._layers: list[Layer] = []
        self._known: dict[Value, Value] = {}
        self._next_layer = max((layer.id for layer in graph.layers), default=-1) + 1
        # Behind the old ids, as kept and new layers share one graph.
        self._next_value = max((value.id for value in graph.values()), default=-1) + 1

    def mapped(self, value: Value) -> Value:
        """The new graph's value for one of the old graph."""
        return self._known.get(value, value)

    def constant(self, data: Array, info: TensorInfo, name: str) -> Value:
        """A constant of the new graph, with the type and quantisation of an info."""
        # NumPy makes a vector of a scalar here, hence the shape once more.
        elements = np.ascontiguousarray(data, info.data_type.dtype).reshape(data.shape)
        known = TensorInfo(data.shape, info.data_type, info.quantization, is_constant=True)
        return self._value(known, name, elements)

    def alias(self, old: Value, new: Value) -> None:
        """Let a value of the new graph stand for one of the old graph."""
        self._known[old] = new

    def keep(self, layer: Layer) -> Layer:
        """Add a layer as it is; what it reads may have been replaced."""
        inputs = [None if value is None else self.mapped(value) for value in layer.inputs]
        # The same object: answers of backends are remembered by layers.
        if all(map(is_, inputs, layer.inputs)):
            self._layers.append(layer)
            return layer
        return self.replace(layer, layer.operation, inputs)

    def replace(
        self,
        layer: Layer,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo] | None = None,
        origins: Sequence[Layer] = (),
    ) -> Layer:
        """Add a layer that stands for one of the old graph, with its id and name.

        Parameters
        ----------
        layer : Layer
        operation : Operation
        inputs : sequence of (Value or None)
            Of the new graph.
        outputs : sequence of TensorInfo, optional
            As before if left out.
        origins : sequence of Layer
            All the layers that it does the work of, if there are others.

        Raises
        ------
        LayerValidationError
            If operands and attributes do not go together.
        """
        declared = layer.output_infos if outputs is None else outputs
        infos = self._infer(layer.where, operation, inputs, declared)
        made = tuple(
            # The same value where possible, or every layer behind it would be made anew.
            old if info == old.info else self._value(info, old.name)
            for info, old in zip(infos, layer.outputs, strict=True)
        )
        self._known.update(zip(layer.outputs, made, strict=True))
        names = _names(origins) or layer.origins
        self._layers.append(Layer(layer.id, layer.name, operation, tuple(inputs), made, names))
        return self._layers[-1]

    def insert(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        name: str,
        outputs: Sequence[TensorInfo | None] = (),
        origins: Sequence[Layer] = (),
    ) -> Layer:
        """Add a layer that the old graph does not have; parameters and errors as for `replace`."""
        infos = self._infer(f"{operation.name} '{name}'", operation, inputs, outputs)
        made = tuple(
            self._value(info, f"{name}:{index}" if index else name)
            for index, info in enumerate(infos)
        )
        layer_id, self._next_layer = self._next_layer, self._next_layer + 1
        layer = Layer(layer_id, name, operation, tuple(inputs), made, _names(origins))
        self._layers.append(layer)
        return layer

    def _infer(
        self,
        where: str,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None],
    ) -> tuple[TensorInfo, ...]:
        """Infer the outputs of a layer; what is wrong with it names the layer."""
        try:
            check_attributes(operation)
            return operation.infer([v.info if v is not None else None for v in inputs], outputs)
        except ArmpyError as error:
            raise located(lambda: where, error) from error.__cause__

    def _value(self, info: TensorInfo, name: str, data: Array | None = None) -> Value:
        """Make a value that the old graph does not have."""
        self._next_value += 1
        return Value(self._next_value - 1, info, name, data)

    def finish(self) -> Graph:
        """The new graph, without what nothing reads."""
        graph = self.graph
        made = replace(
            graph,
            layers=tuple(self._layers),
            outputs=tuple(map(self.mapped, graph.outputs)),
            variables=tuple(
                replace(one, next_value=self.mapped(one.next_value)) for one in graph.variables
            ),
        )
        return remove_dead(made)


def _names(layers: Sequence[Layer]) -> tuple[str, ...]:
    """The layers of the model that some layers were made from."""
    return tuple(dict.fromkeys(name for one in layers for name in one.origins or (one.name,)))


def only_reader(graph: Graph, value: Value) -> Layer | None:
    """The only layer that reads a value, once; None if others do or it is a result."""
    readers = graph.consumers.get(value, ())
    # Read twice by one layer, a value cannot be replaced for one operand alone.
    if len(readers) != 1 or value in graph.result_set or readers[0].inputs.count(value) != 1:
        return None
    return readers[0]
