"""Rebuilds a graph with what is known by now: shapes, constants, fewer layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from armpy import compiler  # folding of sizes: imported when some are traced
from armpy.compiler.folding.branches import chosen, with_known_shapes
from armpy.compiler.folding.constants import Evaluator, folding_allowance, is_small
from armpy.core.symbolic import is_traced
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, SizesValue, Value
from armpy.graph.network import Network
from armpy.ops.composite import Composite
from armpy.ops.control_flow import ControlFlow, If, While
from armpy.ops.operation import Array, Operation, as_attribute, located
from armpy.ops.trimming import trimmed
from armpy.profiling import phase
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType


@phase("specialise")
def specialize(
    graph: Graph,
    shapes: Sequence[tuple[int, ...] | None] = (),
    values: Sequence[Array | None] = (),
    evaluator: Evaluator | None = None,
) -> Graph:
    """Bind inputs, infer shapes, fold constants, drop what is dead or does nothing.

    Parameters
    ----------
    shapes : sequence of (tuple of int or None)
        Per graph input, its concrete shape; None to leave it as it is.
    values : sequence of (ndarray or None)
        Per graph input, its elements if they are known already; it then becomes a constant.
    evaluator : Evaluator, optional
        Folds layers whose inputs are all constant; without it only those are folded whose
        outputs follow from shapes.

    Returns
    -------
    Graph
        With the same inputs (bound ones included) and outputs, in the same order, and the
        layers' ids and names kept.

    Raises
    ------
    LayerValidationError
        If the shapes do not go together.
    """
    return _Specializer(graph, evaluator, {}).run(shapes, values)


_LoopKey: TypeAlias = tuple[ControlFlow, tuple[TensorInfo | None, ...], tuple[bytes | None, ...]]
"""What runs graphs, what it is handed, and the small constants among that."""


class _Specializer:
    """One forward walk over a graph that builds the next one."""

    def __init__(
        self, graph: Graph, evaluator: Evaluator | None, loops: dict[_LoopKey, ControlFlow]
    ) -> None:
        self._graph = graph
        self._evaluator = evaluator
        # Each loop is looked at once, however often it lies in others.
        self._loops = loops
        self._allowed_bytes = folding_allowance(graph)
        self._net = Network()
        self._known: dict[Value, Value] = {}
        self._live = _live_layers(graph)
        self._next_id = max((layer.id for layer in graph.layers), default=-1) + 1

    def run(
        self, shapes: Sequence[tuple[int, ...] | None], values: Sequence[Array | None]
    ) -> Graph:
        """Bind the inputs, walk, and connect the outputs."""
        graph, net = self._graph, self._net
        for index, value in enumerate(graph.inputs):
            shape = shapes[index] if index < len(shapes) else None
            info = value.info if shape is None else value.info.with_shape(shape)
            self._known[value] = net.input(
                value.name, info, default_shape=shape or graph.default_shapes[index]
            )
            data = values[index] if index < len(values) else None
            if data is not None:
                # The input stays as well, read by nobody: callers find the inputs that they know.
                self._known[value] = self._constant(data, info, value.name)
        for variable in graph.variables:
            self._known[variable.value] = net.variable_like(variable)
        for layer in graph.layers:
            # A dead layer is neither checked nor folded: it may not even fit these shapes.
            if layer in self._live:
                try:
                    self._layer(layer)
                except ArmpyError as error:
                    raise located(lambda where=layer.where: where, error) from error.__cause__  # type: ignore[misc]
        edge = zip(graph.output_names, graph.outputs, graph.output_shapes, strict=True)
        for name, value, declared_shape in edge:
            made = self._plain(self._mapped(value))
            net.output(name, made, declared_shape=declared_shape)  # type: ignore[arg-type]  # it is there
        for variable in graph.variables:
            made = self._plain(self._mapped(variable.next_value))
            net.assign(self._known[variable.value], made)  # type: ignore[arg-type]  # as above
        # Once more: folding, and operands that became attributes, leave some makers unread.
        return remove_dead(net.build())

    def _layer(self, layer: Layer) -> None:
        """Expand one layer, fold it, leave it out, or add it."""
        inputs = [None if value is None else self._mapped(value) for value in layer.inputs]
        operation = layer.operation
        made: Sequence[Value]
        if isinstance(operation, Composite) and operation.is_ready(inputs):
            made = operation.expand(_Expansion(self, layer), inputs)
        elif isinstance(operation, If) and (branch := chosen(operation, inputs)) is not None:
            made = self._inlined(layer, branch, inputs[1:])
        else:
            declared = list(layer.output_infos)
            if not operation.has_data_dependent_outputs:  # else nothing tells but the declaration
                # The old shapes are those of other inputs, or open; the operation tells them anew.
                declared = [info.with_shape(None) for info in declared]
            made = self.add(layer, operation, inputs, declared)
        self._known.update(zip(layer.outputs, made, strict=True))

    def add(
        self,
        layer: Layer,
        operation: Operation,
        inputs: Sequence[Value | None],
        declared: Sequence[TensorInfo | None],
        name: str = "",
    ) -> Sequence[Value]:
        """The outputs of an operation that stands for `layer`, or for a part of it if named."""
        operation, inputs = absorb_constants(operation, inputs)
        if isinstance(operation, If | While):
            operation = self._shaped(operation, inputs)
        infos = [None if value is None else value.info for value in inputs]
        outputs = operation.infer(infos, declared)
        operation, inputs, infos = self._trimmed(operation, inputs, infos)
        names = [name] * len(outputs) if name else [value.name for value in layer.outputs]
        folded: Sequence[Array] | None = None
        if all(info is not None and info.shape is not None for info in infos):
            # Few operations tell values: for others nobody asks how large these would be.
            if type(operation).infer_values is not Operation.infer_values and is_small(outputs):
                folded = operation.infer_values(infos)  # type: ignore[arg-type]  # none is None
            same_as = operation.identity_of(infos, outputs)  # type: ignore[arg-type]
            if same_as is not None and inputs[same_as] is not None:
                return [inputs[same_as]]  # type: ignore[list-item]  # it is not None
        if folded is None:
            folded = self._folded(operation, inputs, outputs)
        if folded is not None:
            return [
                self._constant(data, info, output)
                for output, info, data in zip(names, outputs, folded, strict=True)
            ]
        # A layer keeps its id, by which failures and placements find it when shapes change.
        layer_id = self._new_id() if name else layer.id
        return self._net.add_layer(
            operation,
            [self._plain(value) for value in inputs],
            name=name or layer.name,
            outputs=declared,
            output_names=names,
            layer_id=layer_id,
            origins=(layer.name,) if name else layer.origins,
        ).outputs

    def _folded(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo],
    ) -> Sequence[Array] | None:
        """The outputs' elements where they follow from constants; traced sizes stay if they can."""
        if self._evaluator is None:
            return None
        if any(isinstance(value, SizesValue) for value in inputs):
            sizes = compiler.fold_sizes(self._evaluator, operation, inputs, outputs)
            if sizes is not None:
                return sizes
        # A table is cut to a traced size while the network runs: folded, it would fix the size.
        if any(is_traced(*info.shape or ()) for info in outputs):
            return None
        folded = self._evaluator.fold(operation, inputs, outputs, self._allowed_bytes)
        # One allowance for the graph: many small constants are as large as a few large ones.
        self._allowed_bytes -= sum(array.nbytes for array in folded or ())
        return folded

    def _inlined(
        self, layer: Layer, graph: Graph, inputs: Sequence[Value | None]
    ) -> Sequence[Value]:
        """Outputs of a graph whose layers take the place of the one that would run it."""
        pairs = zip(graph.inputs, inputs, strict=True)
        self._known.update((inner, value) for inner, value in pairs if value is not None)
        for inner in graph.layers:
            name = f"{layer.name}/{inner.name}"
            # The If stays their origin: feature levels by name hold for inner layers, too.
            self._layer(replace(inner, id=self._new_id(), name=name, origins=(layer.name,)))
        return [self._mapped(value) for value in graph.outputs]

    def _shaped(self, operation: If | While, inputs: Sequence[Value | None]) -> ControlFlow:
        """What runs graphs, with the shapes that these have whenever they run."""
        # Few models have loops, and this imports what loops are looked through for.
        from armpy.compiler.loop_shapes import bindable, with_fixed_shapes  # noqa: PLC0415

        infos = tuple(None if value is None else value.info for value in inputs)
        known = (bindable(value) for value in inputs)
        key = (operation, infos, tuple(None if data is None else data.tobytes() for data in known))
        if key not in self._loops:
            with_shapes = with_fixed_shapes if isinstance(operation, While) else with_known_shapes
            self._loops[key] = with_shapes(
                operation,  # type: ignore[arg-type]  # each is given its own
                inputs,
                lambda graph, shapes, values: _Specializer(graph, self._evaluator, self._loops).run(
                    shapes, values
                ),
            )
        return self._loops[key]

    def _trimmed(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        infos: list[TensorInfo | None],
    ) -> tuple[Operation, Sequence[Value | None], list[TensorInfo | None]]:
        """A layer whose windows are no larger than they need to be; see `trimmed`."""
        if any(info is not None and not info.is_fully_shaped for info in infos):
            return operation, inputs, infos
        smaller, slices = trimmed(operation, infos)
        if any(inputs[index].data is None for index in slices):  # type: ignore[union-attr]  # it is there
            return operation, inputs, infos  # what is computed would have to be cut
        kept = list(inputs)
        for index, part in slices.items():
            value = kept[index]
            assert value is not None
            assert value.data is not None
            kept[index] = self._constant(value.data[part], value.info, value.name)
        return smaller, kept, [None if value is None else value.info for value in kept]

    def _new_id(self) -> int:
        """An id for a layer that the graph did not have."""
        self._next_id += 1
        return self._next_id - 1

    def constant(
        self, data: Array, data_type: DataType | None, quantization: Quantization | None
    ) -> Value:
        """A constant that the graph did not have."""
        return self._net.constant(data, data_type=data_type, quantization=quantization)

    def _plain(self, value: Value | None) -> Value | None:
        """A constant of plain numbers, which fixes traced sizes in one; others as they are."""
        if not isinstance(value, SizesValue):
            return value
        return self._constant(value.data, value.info, value.name)

    def _mapped(self, value: Value) -> Value:
        """The new graph's value for one of the old graph."""
        if value not in self._known and value.data is not None:
            self._known[value] = self._constant(value.data, value.info, value.name)
        return self._known[value]

    def _constant(self, data: Array, info: TensorInfo, name: str) -> Value:
        """A constant of the new graph."""
        return self._net.constant(
            data, name=name, data_type=info.data_type, quantization=info.quantization
        )


class _Expansion:
    """Adds the layers that one composite layer turns into."""

    def __init__(self, specializer: _Specializer, layer: Layer) -> None:
        self._specializer = specializer
        self._layer = layer
        self._names: Counter[str] = Counter()

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer, folded where all is known."""
        name = name or operation.name
        self._names[name] += 1
        number = f"_{self._names[name]}" if self._names[name] > 1 else ""
        # Numbered in order of expansion, so that names are the same whenever it is expanded.
        where = f"{self._layer.name}/{name}{number}"
        return tuple(self._specializer.add(self._layer, operation, inputs, outputs, where))

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        return self._specializer.constant(data, data_type, quantization)


def absorb_constants(
    operation: Operation, inputs: Sequence[Value | None]
) -> tuple[Operation, list[Value | None]]:
    """Turn constant operands into attributes where the operation says so."""
    kept = list(inputs)
    attributes: dict[str, object] = {}
    for index, value in enumerate(inputs):
        becomes = operation.input_operand(index).becomes if operation.inputs else ""
        if becomes and value is not None and value.is_constant:
            sizes = value.sizes if isinstance(value, SizesValue) else value.data
            attributes[becomes] = as_attribute(sizes)  # type: ignore[arg-type]  # it is there
            # The place stays, as operands behind it are told by their positions.
            kept[index] = None
    while kept and kept[-1] is None:
        kept.pop()
    return (operation.with_attributes(**attributes) if attributes else operation), kept


def _live_layers(graph: Graph) -> set[Layer]:
    """The layers that some result depends on."""
    needed = set(graph.results)
    live: set[Layer] = set()
    # One walk is enough, as readers stand behind writers.
    for layer in reversed(graph.layers):
        if any(value in needed for value in layer.outputs):
            live.add(layer)
            needed.update(value for value in layer.inputs if value is not None)
    return live


def remove_dead(graph: Graph) -> Graph:
    """The graph without the layers that no result depends on."""
    live = _live_layers(graph)
    if len(live) == len(graph.layers):
        return graph
    return replace(graph, layers=tuple(layer for layer in graph.layers if layer in live))
