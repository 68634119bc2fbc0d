"""Rebuilds a graph with the facts known by now: shapes, constants, fewer layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from armpy import compiler  # folding of sizes: imported when some are traced
from armpy.compiler.folding.constants import (
    EXPANSION_GROWTH,
    Evaluator,
    folding_allowance,
    is_small,
)
from armpy.core.symbolic import Size, SymbolicTrace, is_traced
from armpy.core.text_memory import held_bytes
from armpy.errors import (
    ArmpyError,
    LayerValidationError,
    ParserError,
    UnsupportedOperatorError,
)
from armpy.graph import Graph, Layer, Rewriter, SizesValue, Value, graphs_of
from armpy.graph.network import Network, OperatorBuilder
from armpy.graph.rewriter import live_layers
from armpy.ops.backend_internal import UnfitGraph
from armpy.ops.composite import Composite
from armpy.ops.control_flow import ControlFlow, If, While
from armpy.ops.operation import Array, Operation, as_attribute, located
from armpy.ops.trimming import trimmed
from armpy.profiling import phase
from armpy.tensor import Quantization, TensorInfo, format_shape
from armpy.types import DataType


@phase("specialise")
def specialize(
    graph: Graph,
    # Per graph input, its concrete shape; None to leave it as it is
    shapes: Sequence[tuple[int, ...] | None] = (),
    # Per graph input, its elements if they are known already; it then becomes a constant
    values: Sequence[Array | None] = (),
    # Folds layers whose inputs are all constant; without it only those are folded whose outputs
    # follow from shapes
    evaluator: Evaluator | None = None,
) -> Graph:
    """Bind inputs, infer shapes, fold constants, drop layers that are dead or do nothing.

    Raises LayerValidationError if the shapes do not go together.

    Returns
    -------
    Graph
        With the same inputs (bound ones included) and outputs, in the same order, and the
        layers' ids and names kept.
    """
    return _Specializer(graph, evaluator, {}).run(shapes, values)


_MOST_NAMED = 3
"""Inputs that an error names."""


@contextmanager
def call_shapes_named(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> Iterator[None]:
    """Name the shapes of a call in errors of specialising a graph for them.

    Raises LayerValidationError if a layer, or a part of the file that waits for shapes, does not
    take them. Its fix is to choose other shapes, not to correct the file, unless all shapes are
    the file's own.
    """
    try:
        yield
    except UnsupportedOperatorError:
        raise
    except LayerValidationError as error:
        if chosen := _chosen_shapes(graph, shapes):
            fix = f"This is for the shapes of the call, {_listed(chosen)}: choose others"
            error.fix = ". ".join(filter(None, [error.fix.rstrip("."), fix]))
        raise
    except ParserError as error:
        # Parts of a file that wait for shapes are read now: its other parts have been before.
        chosen = _chosen_shapes(graph, shapes)
        if not chosen:
            reason = str(error).rstrip(".")
            raise LayerValidationError(f"the inputs' shapes do not fit: {reason}") from error
        plain = copy(error)
        plain.fix = ""  # it is about the file
        # All that the error says is said, but for its fix.
        raise LayerValidationError(
            f"the model does not take the shapes of the call, {_listed(chosen)}: {plain}",
            fix="Choose others",
        ) from error.__cause__


def _chosen_shapes(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes of a call by input, without those that the file says."""
    return {
        value.name: shape
        for value, shape, default in zip(graph.inputs, shapes, graph.default_shapes, strict=True)
        if not value.info.is_fully_shaped and shape != default
    }


def _listed(chosen: Mapping[str, tuple[int, ...]]) -> str:
    """List the first shapes of a call."""
    more = f" and {len(chosen) - _MOST_NAMED} more" if len(chosen) > _MOST_NAMED else ""
    named = [f"'{name}' {format_shape(shape)}" for name, shape in chosen.items()]
    return ", ".join(named[:_MOST_NAMED]) + more


_LoopKey: TypeAlias = tuple[ControlFlow, tuple[TensorInfo | None, ...], tuple[bytes | None, ...]]
"""Operations that run graphs, their arguments, and the small constants among those."""


class _Specializer:
    """One forward walk over a graph that builds the next one."""

    def __init__(
        self, graph: Graph, evaluator: Evaluator | None, loops: dict[_LoopKey, ControlFlow]
    ) -> None:
        self._graph = graph
        self._evaluator = evaluator
        # Each loop is looked at once, however often it lies in others.
        self._loops = loops
        self._allowed_bytes = self._expansion_bytes = folding_allowance(graph)
        # Constants that the expansion under way has folded, and that no layer reads yet.
        self._unread: dict[Value, int] | None = None
        self._rewriter = Rewriter(graph)
        self.constant = self._rewriter.constant
        self._live = live_layers(graph)

    def run(
        self, shapes: Sequence[tuple[int, ...] | None], values: Sequence[Array | None]
    ) -> Graph:
        """Bind the inputs, walk, and connect the outputs."""
        graph, rewriter = self._graph, self._rewriter
        unknown = [None] * len(graph.inputs)
        shapes, values = [*shapes, *unknown], [*values, *unknown]  # which may be shorter
        inputs: list[Value] = []
        sizes: list[object] = [dim for shape in shapes for dim in shape or ()]
        sizes += [size for array in values if array is not None for size in array.flat]
        trace = next((size.trace for size in sizes if isinstance(size, Size)), SymbolicTrace([]))
        for value, shape, data in zip(graph.inputs, shapes, values, strict=False):
            info = value.info if shape is None else value.info.with_shape(shape)
            bound = value if info == value.info else rewriter.value(info, value.name)
            inputs.append(bound)
            # A known input stays as well, without readers: callers find the inputs that they know.
            rewriter.alias(value, bound if data is None else self.constant(data, info, value.name))
        for layer in graph.layers:
            # A dead layer is neither checked nor folded: it may not even fit these shapes.
            if layer in self._live:
                trace.layer = layer.where
                try:
                    self._layer(layer)
                except ArmpyError as error:
                    raise located(lambda where=layer.where: where, error) from error.__cause__  # type: ignore[misc]
        trace.layer = ""
        pairs = zip(shapes, graph.default_shapes, strict=False)
        # Folding, and operands that became attributes, leave some makers unread.
        return rewriter.finish(
            inputs,
            [self._plain(rewriter.mapped(value)) for value in graph.outputs],
            [self._plain(rewriter.mapped(variable.next_value)) for variable in graph.variables],
            [shape or default for shape, default in pairs],
        )

    def _layer(self, layer: Layer) -> None:
        """Expand one layer, fold it, leave it out, or add it."""
        inputs = self._rewriter.operands(layer)
        operation = layer.operation
        values: Sequence[Value]
        if isinstance(operation, Composite) and operation.is_ready(inputs):
            # Numbered in order of expansion, so that names are the same whenever it is expanded.
            build = OperatorBuilder(partial(self.add, layer), self.typed_constant, layer.name)
            values = self._expanded(lambda: operation.expand(build, inputs))
        elif isinstance(operation, If) and (branch := _chosen(operation, inputs)) is not None:
            values = self._inlined(layer, branch, inputs[1:])
        else:
            declared = list(layer.output_infos)
            if not operation.has_data_dependent_outputs:  # else only the declaration is known
                # The old shapes are those of other inputs, or open; the operation infers them anew.
                declared = [info.with_shape(None) for info in declared]
            values = self.add(layer, operation, inputs, declared)
        for old, new in zip(layer.outputs, values, strict=True):
            self._rewriter.alias(old, new)

    def _expanded(self, expand: Callable[[], Sequence[Value]]) -> Sequence[Value]:
        """Expand a composite; constants on the way to others do not count in the end.

        Weights that are shifted, cast and scaled take a multiple of their size on the way, and
        once their size in the network.
        """
        outer, self._unread = self._unread, {}
        values = expand()
        for value in values:
            self._unread.pop(value, None)
        self._allowed_bytes += sum(self._unread.values())
        self._unread = outer
        return values

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
            # Few operations infer values: for others the size does not matter.
            if type(operation).infer_values is not Operation.infer_values and is_small(outputs):
                folded = operation.infer_values(infos)  # type: ignore[arg-type]  # none is None
            same_as = operation.identity_of(infos, outputs)  # type: ignore[arg-type]
            if same_as is not None and inputs[same_as] is not None:
                return [inputs[same_as]]  # type: ignore[list-item]  # it is not None
        if folded is None:
            folded = self._folded(operation, inputs, outputs)
        if folded is not None:
            constants = [
                self.constant(data, info, output)
                for output, info, data in zip(names, outputs, folded, strict=True)
            ]
            if self._unread is not None:
                self._unread.update(
                    (value, held_bytes(array))
                    for value, array in zip(constants, folded, strict=True)
                )
            return constants
        if self._unread:
            for value in inputs:
                if value is not None:
                    self._unread.pop(value, None)
        inputs = [None if value is None else self._plain(value) for value in inputs]
        if name:
            origins = (layer.name,)
            return self._rewriter.append(operation, inputs, name, outputs, names, origins).outputs
        # A layer keeps its id, by which failures and placements find it when shapes change.
        return self._rewriter.put(layer, operation, inputs, outputs).outputs

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
        # A table is cut at a traced size while the network runs: folded, it would fix the size.
        places = getattr(operation, "begin", None) or ()
        if is_traced(*places, *(dim for info in outputs for dim in info.shape or ())):
            return None
        allowed_bytes = self._allowed_bytes
        if self._unread is not None:
            allowed_bytes += EXPANSION_GROWTH * self._expansion_bytes
        folded = self._evaluator.fold(operation, inputs, outputs, allowed_bytes)
        # One allowance for the graph: many small constants are as large as a few large ones.
        self._allowed_bytes -= sum(map(held_bytes, folded or ()))
        return folded

    def _inlined(
        self, layer: Layer, graph: Graph, inputs: Sequence[Value | None]
    ) -> Sequence[Value]:
        """Outputs of a graph whose layers take the place of the one that would run it."""
        for value, known in zip(graph.inputs, inputs, strict=True):
            if known is not None:
                self._rewriter.alias(value, known)
        for inner in graph.layers:
            name, layer_id = f"{layer.name}/{inner.name}", self._rewriter.new_id()
            # The If stays their origin: feature levels by name hold for inner layers, too.
            self._layer(replace(inner, id=layer_id, name=name, origins=(layer.name,)))
        return [self._rewriter.mapped(value) for value in graph.outputs]

    def _shaped(self, operation: If | While, inputs: Sequence[Value | None]) -> ControlFlow:
        """Return a runner of graphs, with the shapes that these have whenever they run."""
        # Few models have loops, and this imports what loops are looked through for.
        from armpy.compiler.loop_shapes import bindable, with_fixed_shapes  # noqa: PLC0415

        infos = tuple(None if value is None else value.info for value in inputs)
        known = (bindable(value) for value in inputs)
        key = (operation, infos, tuple(None if data is None else data.tobytes() for data in known))
        if key not in self._loops:
            with_shapes = with_fixed_shapes if isinstance(operation, While) else _with_known_shapes
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
        """A layer whose windows are as small as possible; see `trimmed`."""
        if any(info is not None and not info.is_fully_shaped for info in infos):
            return operation, inputs, infos
        smaller, slices = trimmed(operation, infos)
        if any(inputs[index].data is None for index in slices):  # type: ignore[union-attr]  # it is there
            return operation, inputs, infos  # the result would have to be cut
        values = list(inputs)
        for index, part in slices.items():
            value = values[index]
            assert value is not None
            assert value.data is not None
            values[index] = self.constant(value.data[part], value.info, value.name)
        return smaller, values, [None if value is None else value.info for value in values]

    def typed_constant(
        self, data: Array, data_type: DataType | None, quantization: Quantization | None
    ) -> Value:
        """A constant of an expanded operation."""
        like = None if data_type is None else TensorInfo(None, data_type, quantization)
        return self.constant(data, like)

    def _plain(self, value: Value) -> Value:
        """A constant of plain numbers, which fixes traced sizes in one; others as they are."""
        if not isinstance(value, SizesValue):
            return value
        return self.constant(value.data, value.info, value.name)


def absorb_constants(
    operation: Operation, inputs: Sequence[Value | None]
) -> tuple[Operation, list[Value | None]]:
    """Turn constant operands into attributes where the operation says so."""
    remaining = list(inputs)
    attributes: dict[str, object] = {}
    for index, value in enumerate(inputs):
        becomes = operation.input_operand(index).becomes if operation.inputs else ""
        if becomes and value is not None and value.is_constant:
            sizes = value.sizes if isinstance(value, SizesValue) else value.data
            attributes[becomes] = as_attribute(sizes)  # type: ignore[arg-type]  # it is there
            # The place stays, as later operands are identified by their positions.
            remaining[index] = None
    while remaining and remaining[-1] is None:
        remaining.pop()
    return (operation.with_attributes(**attributes) if attributes else operation), remaining


Specialize: TypeAlias = Callable[[Graph, Sequence[tuple[int, ...]], Sequence[Array | None]], Graph]
"""Binds the shapes of a graph's inputs, and their known elements."""


def _chosen(operation: If, inputs: Sequence[Value | None]) -> Graph | None:
    """The branch that runs, if the condition is constant; None if it is not."""
    condition = inputs[0] if inputs else None
    # Optional operands that are missing cannot take the place of a graph's inputs.
    if condition is None or condition.data is None or None in inputs:
        return None
    (_, then), (_, other) = graphs_of(operation)
    # A condition has one element and any rank.
    graph = then if condition.data.reshape(-1)[0] else other
    return None if graph.variables else graph


def _with_known_shapes(
    operation: If,
    inputs: Sequence[Value | None],  # the layer's, the condition first
    specialize: Specialize,
) -> If:
    """An If whose branches are specialised for their arguments: shapes, and constants.

    Errors in a branch are raised when it has to run: one that does not fit is replaced.
    """
    from armpy.compiler.loop_shapes import is_unfinished  # noqa: PLC0415 - as in `_shaped`

    arguments = inputs[1:]
    if not all(value is not None and value.info.is_fully_shaped for value in arguments):
        return operation
    shapes = [value.info.known_shape for value in arguments if value is not None]
    values = [value.data for value in arguments if value is not None]
    (_, then), (_, other) = graphs_of(operation)
    is_shaped = all(graph.is_fully_shaped for graph in (then, other))
    if is_shaped and not is_unfinished(then, other):
        return operation
    branches: list[Graph | ArmpyError] = []
    for graph in (then, other):
        try:
            branches.append(specialize(graph, shapes, values))
        except ArmpyError as error:
            branches.append(error)
    fitting = [branch for branch in branches if isinstance(branch, Graph)]
    # An error with traced sizes may come of tracing alone.
    is_sure = len(fitting) == 1 and fitting[0].is_fully_shaped and not is_traced(*chain(*shapes))
    if len(fitting) == 2 or is_sure:
        return If(*[b if isinstance(b, Graph) else _unfit(b, fitting[0]) for b in branches])
    return operation


def _unfit(error: ArmpyError, other: Graph) -> Graph:
    """A branch that raises an error if it is chosen, with the other one's outputs."""
    network = Network()
    for value in other.inputs:
        network.input(value.name, value.info)
    reason = str(error).removeprefix(f"{error.where}: ")
    layer = network.add_layer(UnfitGraph(error.where, reason, other.output_infos), ())
    for name, value in zip(other.output_names, layer.outputs, strict=True):
        network.output(name, value)
    return network.build()
