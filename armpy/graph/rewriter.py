"""The rewriter: a forward walk over a graph that makes another graph of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import TypeVar

import numpy as np

from armpy.errors import ArmpyError
from armpy.graph.graph import Graph, Layer, Value
from armpy.graph.network import check_assigned, constant_value
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Array, Operation, located
from armpy.tensor import TensorInfo, same_shape

Inputs = Sequence[Value | None]

T = TypeVar("T")


class Rewriter:
    """A graph under construction that stands for another one.

    Values and layers that stay as they are become part of both graphs, as the same objects; only a
    layer with another operation, or with operands of other types or shapes, is inferred and checked
    again. New values and layers get ids after those of the graph.

    Examples
    --------
    A pass that leaves out every layer that changes nothing::

        def drop_identities(graph, context):
            def drop(rewriter, layer, source):
                rewriter.alias(layer.output, rewriter.mapped(source))

            sources = {layer: layer["input"] for layer in graph.layers if is_identity(layer)}
            return rewrite(graph, sources, drop)
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._layers: list[Layer] = []
        self._known: dict[Value, Value] = {}
        self._own = set(graph.values())
        self._next_layer = max((layer.id for layer in graph.layers), default=-1) + 1
        self._next_value = max((value.id for value in self._own), default=-1) + 1

    def mapped(self, value: Value) -> Value:
        """The new graph's value for one of the old graph, or of a graph that is inserted."""
        known = self._known.get(value)
        if known is not None:
            return known
        data = value.data
        if data is None or (value in self._own and data.flags.c_contiguous):
            return value
        # The id of an inserted graph's constant may be taken here, and a constant of a file may be
        # a view that skips elements, which backends are never handed.
        self._known[value] = self.constant(data, value.info, value.name)
        return self._known[value]

    def operands(self, layer: Layer) -> list[Value | None]:
        """The new graph's values for what a layer reads."""
        return [None if value is None else self.mapped(value) for value in layer.inputs]

    def alias(self, old: Value, new: Value) -> None:
        """Let a value of the new graph stand for one of the old graph."""
        self._known[old] = new

    def value(self, info: TensorInfo, name: str, data: Array | None = None) -> Value:
        """Make a value that the old graph does not have."""
        return self._owned(Value(self._next_value, info, name, data))

    def constant(self, data: Array, info: TensorInfo | None = None, name: str = "") -> Value:
        """Make a constant with the type and quantisation of `info`, else the array's type."""
        if info is None:
            return self._owned(constant_value(self._next_value, data, name))
        if data.dtype != object:  # which are strings or traced sizes
            data = np.asarray(data, info.data_type.dtype)
        value = constant_value(self._next_value, data, name, info.data_type, info.quantization)
        return self._owned(value)

    def keep(self, layer: Layer, inputs: Inputs | None = None) -> Layer:
        """Add a layer with its operation; it reads `inputs`, else what stands for its operands."""
        inputs = self.operands(layer) if inputs is None else inputs
        # The same object where possible: answers of backends are remembered by layers.
        if len(inputs) == len(layer.inputs) and all(map(is_, inputs, layer.inputs)):
            self._layers.append(layer)
            return layer
        infos = tuple(None if value is None else value.info for value in inputs)
        if infos == layer.input_infos:
            return self.put(layer, layer.operation, inputs, layer.output_infos)
        return self.replace(layer, layer.operation, inputs)

    def replace(
        self,
        layer: Layer,
        operation: Operation,
        inputs: Inputs,
        outputs: Sequence[TensorInfo] | None = None,
        origins: Sequence[Layer] = (),
    ) -> Layer:
        """Add a layer that stands for one of the old graph, with its id and name.

        Parameters
        ----------
        inputs : sequence of (Value or None)
            Operands of the new graph.
        outputs : sequence of TensorInfo, optional
            Infos of the outputs; as before if left out.
        origins : sequence of Layer
            All the layers that it does the work of, if there are others.

        Raises
        ------
        LayerValidationError
            If operands and attributes do not go together.
        """
        declared = layer.output_infos if outputs is None else outputs
        infos = _inferred(layer.where, operation, inputs, declared)
        return self.put(layer, operation, inputs, infos, _names(origins))

    def put(
        self,
        layer: Layer,
        operation: Operation,
        inputs: Inputs,
        outputs: Sequence[TensorInfo],
        origins: tuple[str, ...] = (),
    ) -> Layer:
        """Add a layer as `replace` does; its outputs are inferred already."""
        results = tuple(
            # The same value where possible, or every layer after it would be made anew.
            old
            if same_shape(info.shape, old.info.shape) and info == old.info and old in self._own
            else self.value(info, old.name)
            for info, old in zip(outputs, layer.outputs, strict=True)
        )
        self._known.update(zip(layer.outputs, results, strict=True))
        if (
            operation is layer.operation
            and not origins
            and len(inputs) == len(layer.inputs)
            and all(map(is_, inputs, layer.inputs))
            and all(map(is_, results, layer.outputs))
        ):
            self._layers.append(layer)
        else:
            origins = origins or layer.origins
            made_layer = Layer(layer.id, layer.name, operation, tuple(inputs), results, origins)
            self._layers.append(made_layer)
        return self._layers[-1]

    def insert(
        self,
        operation: Operation,
        inputs: Inputs,
        name: str,
        outputs: Sequence[TensorInfo | None] = (),
        origins: Sequence[Layer] = (),
    ) -> Layer:
        """Add a layer that the old graph does not have; parameters and errors as for `replace`."""
        infos = _inferred(f"{operation.name} '{name}'", operation, inputs, outputs)
        names = [f"{name}:{index}" if index else name for index in range(len(infos))]
        return self.append(operation, inputs, name, infos, names, _names(origins))

    def append(
        self,
        operation: Operation,
        inputs: Inputs,
        name: str,
        outputs: Sequence[TensorInfo],
        output_names: Sequence[str],
        origins: tuple[str, ...],
    ) -> Layer:
        """Add a layer as `insert` does; its outputs are inferred already."""
        results = tuple(map(self.value, outputs, output_names))
        layer = Layer(self.new_id(), name, operation, tuple(inputs), results, origins)
        self._layers.append(layer)
        return layer

    def new_id(self) -> int:
        """An id for a layer that the old graph does not have."""
        self._next_layer += 1
        return self._next_layer - 1

    def finish(
        self,
        inputs: Sequence[Value] | None = None,
        outputs: Sequence[Value] | None = None,
        next_values: Sequence[Value] | None = None,
        default_shapes: Sequence[tuple[int, ...] | None] | None = None,
        *,
        drop_dead: bool = True,
    ) -> Graph:
        """Make the new graph.

        Parameters
        ----------
        inputs, outputs : sequence of Value, optional
            The old ones, or what stands for them, if left out. Their names stay.
        next_values : sequence of Value, optional
            Per variable; as for `outputs`.
        default_shapes : sequence of (tuple of int or None), optional
            Per input.
        drop_dead : bool
            Whether layers that no result depends on are left out.

        Raises
        ------
        InvalidArgumentError
            If the next value of a variable does not have its type or shape.
        """
        graph = self.graph
        if next_values is None:
            next_values = [self.mapped(variable.next_value) for variable in graph.variables]
        variables = []
        for variable, value in zip(graph.variables, next_values, strict=True):
            if value is not variable.next_value:
                check_assigned(variable.value, value)
                variable = replace(variable, next_value=value)  # noqa: PLW2901 - the same one
            variables.append(variable)
        rewritten = replace(
            graph,
            layers=tuple(self._layers),
            inputs=graph.inputs if inputs is None else tuple(inputs),
            outputs=tuple(map(self.mapped, graph.outputs)) if outputs is None else tuple(outputs),
            variables=tuple(variables),
            default_shapes=graph.default_shapes
            if default_shapes is None
            else tuple(default_shapes),
        )
        return remove_dead(rewritten) if drop_dead else rewritten

    def _owned(self, value: Value) -> Value:
        self._next_value += 1
        self._own.add(value)
        return value


def _inferred(
    where: str, operation: Operation, inputs: Inputs, outputs: Sequence[TensorInfo | None]
) -> tuple[TensorInfo, ...]:
    """The outputs of a layer; errors name it."""
    try:
        check_attributes(operation)
        return operation.infer([v.info if v is not None else None for v in inputs], outputs)
    except ArmpyError as error:
        raise located(lambda: where, error) from error.__cause__


def _names(layers: Iterable[Layer]) -> tuple[str, ...]:
    """The layers of the model that some layers were made from."""
    return tuple(dict.fromkeys(name for layer in layers for name in layer.origins or (layer.name,)))


def rewrite(
    graph: Graph,
    found: Mapping[Layer, T],
    change: Callable[[Rewriter, Layer, T], object],
    gone: Container[Layer] = (),
) -> Graph:
    """The graph with some layers changed; the graph itself if there are none.

    Parameters
    ----------
    found : mapping of Layer to any
        The known facts of each layer to be changed.
    change : callable
        Adds a layer's replacement, given the rewriter, the layer and the facts.
    gone : container of Layer
        Layers to leave out; one that is in `found`, too, is changed.
    """
    if not found:
        return graph
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        if layer in found:
            change(rewriter, layer, found[layer])
        elif layer not in gone:
            rewriter.keep(layer)
    return rewriter.finish()


def live_layers(graph: Graph) -> set[Layer]:
    """The layers that some result depends on."""
    needed = set(graph.results)
    live: set[Layer] = set()
    # One walk is enough, as readers stand after writers.
    for layer in reversed(graph.layers):
        if any(value in needed for value in layer.outputs):
            live.add(layer)
            needed.update(value for value in layer.inputs if value is not None)
    return live


def remove_dead(graph: Graph) -> Graph:
    """The graph without the layers that no result depends on."""
    live = live_layers(graph)
    if len(live) == len(graph.layers):
        return graph
    return replace(graph, layers=tuple(layer for layer in graph.layers if layer in live))


def only_reader(graph: Graph, value: Value) -> Layer | None:
    """The only layer that reads a value, once; None if others do or it is a result."""
    readers = graph.consumers.get(value, ())
    # Read twice by one layer, a value cannot be replaced for one operand alone.
    if len(readers) != 1 or value in graph.result_set or readers[0].inputs.count(value) != 1:
        return None
    return readers[0]
