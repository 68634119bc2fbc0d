"""ONNX's If, Loop and Scan: graphs that nodes run.

Notes
-----
What is known when nodes are walked is resolved there: a condition that is constant takes one
branch, and a short loop that runs a known number of times is written out. The rest becomes If and
While, whose graphs receive the tensors that they read from the graphs around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from armpy.core.dataclass import dataclass
from armpy.errors import ParserError, UnsupportedOperatorError
from armpy.graph import Value
from armpy.ops.backend_internal import UnfitGraph
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.control_flow import If
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_onnx.items import (
    Form,
    Item,
    UnknownElements,
    ValueList,
    flat,
    form_of,
    formed,
    tensors,
)
from armpy_onnx.node import NodeData
from armpy_onnx.reading import kind_of
from armpy_onnx.structures.appending import run_appending
from armpy_onnx.structures.counted_slices import with_gathers
from armpy_onnx.structures.functions import Functions, bound_attributes
from armpy_onnx.structures.loops import MOST_UNROLLED_NODES, ControlNode, OnnxLoop, Turn
from armpy_onnx.structures.outer_scope import InnerGraph, OuterScope
from armpy_onnx.structures.walking import Refusals, RefusedDependency, Scope, Walker

# If


def run_if(node: ControlNode) -> list[Item]:
    """Outputs of an If."""
    branches = [node.graph(name) for name in ("then_branch", "else_branch")]
    count = node.data.num_outputs
    if any(len(branch.output) < count for branch in branches):
        raise node.data.error("a branch has fewer outputs than the node")
    known = node.truth(node.inputs[0] if node.inputs else None)
    if known is not None:
        return node.inline(branches[0 if known else 1], (), "then" if known else "else")[:count]
    outer_scope = OuterScope(node.walker, node.scope, branches)
    graphs = []
    for label, branch in zip(("then", "else"), branches, strict=True):
        enclosed = outer_scope.enclosed((), ())
        enclosed.walker.refusals = Refusals()
        with enclosed.walker.refusals.collected(enclosed.scope, label=node.data.label):
            enclosed.finish(enclosed.walk(branch, (), f"{label}/")[:count])
        graphs.append(enclosed)
    refused = [g for g in graphs if g.walker.refusals or len(g.forms) < count]
    for graph in refused:
        other = graphs[1 - graphs.index(graph)]
        unfit = None if len(refused) > 1 else _unfit(node, outer_scope, graph, other)
        if unfit is None:
            for branch_graph in refused:
                node.walker.refusals.take(branch_graph.walker.refusals)
            raise RefusedDependency
        graphs[graphs.index(graph)] = unfit
    first, other = graphs
    if first.forms != other.forms:
        condition = node.inputs[0]
        assert isinstance(condition, Value)
        raise UnknownElements([condition], "which sequences or optionals the branches give")
    if not first.results:
        return first.restored([])
    inputs = [tensors(node.inputs[:1])[0], *outer_scope.handed]
    results = node.walker.layers(node.data.name, If(first.build(), other.build()), inputs)
    return first.restored(results)


def _unfit(
    node: ControlNode, outer_scope: OuterScope, refused: InnerGraph, other: InnerGraph
) -> InnerGraph | None:
    """A graph that raises an error in the place of a branch that does not fit known shapes.

    None if the branch may be wrong for all shapes, or the other one's outputs are not known.
    """
    try:
        refused.walker.refusals.check()
    except UnsupportedOperatorError:
        return None
    except ParserError as error:
        if node.walker.folds and all(value.info.is_fully_shaped for value in other.results):
            graph = outer_scope.enclosed((), ())
            infos = tuple(value.info for value in other.results)
            operation = UnfitGraph("", str(error).rstrip("."), infos)
            graph.finish(formed(graph.walker.layers("unfit", operation, []), other.forms))
            return graph
    return None


def run_loop(node: ControlNode) -> list[Item]:
    """Outputs of a Loop."""
    body = node.graph("body")
    inputs = [*node.inputs, None, None]
    trips, condition = inputs[:2]
    carried = node.inputs[2:]
    if len(body.input) != 2 + len(carried) or len(body.output) < 1 + len(carried):
        raise node.data.error(
            "the body's inputs and outputs are not those that the loop carries",
            expected=f"{2 + len(carried)} inputs",
            actual=f"{len(body.input)} inputs and {len(body.output)} outputs",
        )
    decisive = [value for value in (trips, condition) if value is not None]
    if len(tensors(decisive)) != len(decisive):
        raise ParserError("a loop's number of turns or condition is not a tensor")

    loop = OnnxLoop(
        node,
        body,
        _turn_of(node, body),
        carried,
        len(body.output) - 1 - len(carried),
        trips if isinstance(trips, Value) else None,
        condition if isinstance(condition, Value) else None,
        _always_goes_on(node, body),
    )
    body = with_gathers(loop)
    if body is not loop.body:
        loop = replace(loop, body=body, turn=_turn_of(node, body))
    return run_appending(loop)[: node.data.num_outputs]


def _turn_of(node: ControlNode, body: onnx.GraphProto) -> Turn:
    """A function that adds one turn of a Loop."""

    def turn(
        walker: Walker, scope: Scope, number: Value, go: Item, state: Sequence[Item], label: str
    ) -> list[Item]:
        where = f"{node.data.name}/{label}"
        return walker.inlined(body, [number, go, *state], scope, where)

    return turn


def _always_goes_on(node: ControlNode, body: onnx.GraphProto) -> bool:
    """Return whether a body gives the condition that it is given, or a constant that is true."""
    name = body.output[0].name
    writers = {output: inner for inner in body.node for output in inner.output}
    while name in writers and kind_of(writers[name]) == "Identity" and writers[name].input:
        name = writers.pop(name).input[0]
    inputs = [value.name for value in body.input]
    if name in inputs:
        return bool(name == inputs[1])
    constants = {tensor.name: tensor for tensor in body.initializer}
    if name in writers and kind_of(writers[name]) == "Constant":
        attributes = bound_attributes(writers[name], node.scope.attributes)
        constants.update((name, a.t) for a in attributes.values() if a.name == "value")
    if name in constants:
        external = node.walker.functions.external
        array, _ = external.read(constants[name], f"{node.data.label}, condition '{name}'")
        return bool(np.all(array))
    outer = node.scope.values.get(name) if name not in writers else None
    return isinstance(outer, Value) and outer.data is not None and bool(np.all(outer.data))


# Scan


def run_scan(node: ControlNode) -> list[Item]:
    """Outputs of a Scan."""
    if node.data.version < 9:
        return _batched_scan(node)
    return _scan(node, tensors(node.inputs))


def _batched_scan(node: ControlNode) -> list[Item]:
    """Outputs of a Scan of opset 8, which has a batch in front of everything."""
    lengths, *operands = node.inputs
    if lengths is not None:
        raise node.data.error("lengths of sequences are not supported")
    inputs, walker, label = tensors(operands), node.walker, node.data.name
    batches = {value.info.known_shape[:1] for value in inputs}
    if len(batches) != 1 or batches == {()}:
        raise node.data.error("the inputs have different batches", actual=str(batches))
    ((batch,),) = batches
    if not 1 <= batch <= MOST_UNROLLED_NODES:
        raise node.data.error("the batch cannot be written out", actual=str(batch))
    results = []
    for number in range(batch):
        index = walker.constant(np.int64(number))
        parts = [walker.call("Gather", value, index, label=label, axis=0) for value in inputs]
        results.append(tensors(_scan(node, parts)))
    joined: list[Item] = []
    for column in zip(*results, strict=True):
        rows = [walker.call("Unsqueeze", value, [0], label=label) for value in column]
        joined.append(walker.call("Concat", *rows, label=label, axis=0))
    return joined


def _axes(node: ControlNode, name: str, values: Sequence[Value], extra: int) -> list[int]:
    """Axes along which a Scan goes."""
    axes = node.data.attribute(name) or [0] * len(values)
    ranks = [len(value.info.known_shape) + extra for value in values]
    if len(axes) != len(values) or any(
        not -rank <= axis < rank for axis, rank in zip(axes, ranks, strict=True)
    ):
        raise node.data.error(
            f"the attribute '{name}' does not have one axis per operand",
            expected=f"{len(values)} axes of tensors of ranks {ranks}",
            actual=str(axes),
        )
    return [axis % rank for axis, rank in zip(axes, ranks, strict=True)]


def _backwards(node: ControlNode, names: Sequence[str], count: int) -> list[bool]:
    """Return whether a Scan goes from the end, per operand."""
    directions = next(
        (directions for name in names if (directions := node.data.attribute(name))), [0] * count
    )
    if len(directions) != count:
        raise node.data.error(
            f"the attribute '{names[0]}' does not have one direction per operand",
            expected=str(count),
            actual=str(directions),
        )
    return [bool(item) for item in directions]


def _scan(node: ControlNode, inputs: Sequence[Value]) -> list[Item]:
    """Outputs of a Scan without a batch."""
    body, num_inputs = node.graph("body"), node.data.attribute("num_scan_inputs")
    if not isinstance(num_inputs, int) or not 1 <= num_inputs <= len(inputs):
        raise node.data.error(
            "the attribute 'num_scan_inputs' is out of range",
            expected=f"1 to {len(inputs)}",
            actual=num_inputs,
        )
    num_carried = len(inputs) - num_inputs
    num_collected = len(body.output) - num_carried
    if len(body.input) != len(inputs) or num_collected < 0:
        raise node.data.error("the body's inputs and outputs are not those that the scan carries")
    carried, scanned = inputs[:num_carried], inputs[num_carried:]
    axes = _axes(node, "scan_input_axes", scanned, 0)
    lengths = {v.info.known_shape[axis] for v, axis in zip(scanned, axes, strict=True)}
    if len(lengths) != 1:
        raise node.data.error("the inputs have different lengths", actual=str(sorted(lengths)))
    (length,) = lengths
    backwards = _backwards(node, ("scan_input_directions", "directions"), num_inputs)

    def turn(
        walker: Walker, scope: Scope, number: Value, go: Item, state: Sequence[Item], label: str
    ) -> list[Item]:
        where = f"{node.data.name}/{label}"
        parts: list[Item] = []
        for index, (axis, from_end) in enumerate(zip(axes, backwards, strict=True)):
            place = number
            if from_end:
                last = walker.constant(np.int64(length - 1))
                place = walker.call("Sub", last, number, label=where)
            source = scope.values[f"{_SCANNED}{index}"]
            assert isinstance(source, Value)
            parts.append(walker.call("Gather", source, place, label=where, axis=axis))
        return [go, *walker.inlined(body, [*state, *parts], scope, where)]

    names = {f"{_SCANNED}{index}": value for index, value in enumerate(scanned)}
    scope = node.scope.child({**node.scope.values, **names}, reads=tuple(names))
    around = ControlNode(node.walker, node.data, node.inputs, scope)
    trips = node.walker.constant(np.int64(length))
    results = OnnxLoop(around, body, turn, carried, num_collected, trips, None, True).run()
    collected = tensors(results[num_carried:])
    return [*results[:num_carried], *_arranged(node, collected)][: node.data.num_outputs]


_SCANNED = "\0scanned "
"""Names of scanned tensors, which no file can use."""


def _arranged(node: ControlNode, collected: Sequence[Value]) -> list[Item]:
    """Arrange a scan's collected results along axis 0 in the wanted order and axes."""
    walker, label = node.walker, node.data.name
    axes = _axes(node, "scan_output_axes", collected, 0)
    backwards = _backwards(node, ("scan_output_directions",), len(collected))
    arranged: list[Item] = []
    for value, axis, from_end in zip(collected, axes, backwards, strict=True):
        result, rank = value, len(value.info.known_shape)
        if from_end:
            # Starts, ends, axes, steps: all of axis 0, the last element first.
            result = walker.call("Slice", result, [-1], [-(2**63) + 1], [0], [-1], label=label)
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            result = walker.call("Transpose", result, label=label, perm=order)
        arranged.append(result)
    return arranged


def _graphs_of(data: NodeData) -> dict[str, onnx.GraphProto]:
    values = ((name, data.attribute(name)) for name in sorted(data.attributes, reverse=True))
    return {name: value for name, value in values if isinstance(value, onnx.GraphProto)}


@dataclass(frozen=True, eq=False, slots=True)
class ControlFlowNode(Composite):
    """A node that runs graphs, and waits for shapes."""

    data: NodeData
    forms: tuple[Form, ...]  # of its inputs
    names: tuple[str, ...]  # of what its graphs read, which are inputs after its own
    scope: Scope  # where the graphs are read; without values
    functions: Functions
    types: tuple[DataType, ...]  # of its outputs

    @property
    def name(self) -> str:
        """The node's kind."""
        return self.data.kind

    @property
    def num_outputs(self) -> int:
        """Number of outputs that the file names."""
        return len(self.types)

    def decides(self, index: int) -> bool:
        """Nothing does: known values are used."""
        return False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing is known yet."""
        return (None,) * len(self.types)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types of the graphs' outputs."""
        return self.types

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Run the node with the values known now."""
        refusals = Refusals()
        walker = Walker(build, self.functions, refusals, folds=True)
        values = [value for value in inputs if value is not None]
        items = formed(values, self.forms)
        own = len(items) - len(self.names)
        scope = self.scope.child(dict(zip(self.names, items[own:], strict=True)), self.scope.reads)
        try:
            results = _CONTROL[self.data.kind](ControlNode(walker, self.data, items[:own], scope))
        except RefusedDependency:
            results = []
        except UnknownElements as waiting:
            raise self.data.error(f"elements decide {waiting.what}") from waiting
        refusals.check()
        return tensors(results[: len(self.types)])


def _control(
    walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope
) -> Sequence[Item]:
    """Outputs of a node that runs graphs: resolved, or left to wait."""
    node = ControlNode(walker, data, inputs, scope)
    run = _CONTROL[data.kind]
    if data.kind == "If" and inputs and node.truth(inputs[0]) is not None:
        return run(node)[: data.num_outputs]
    outer_scope = OuterScope(walker, scope, list(_graphs_of(data).values()))
    items = [*inputs, *outer_scope.items.values()]
    values = flat(items)
    structured = any(isinstance(item, ValueList) for item in items)
    if structured or (walker.folds and all(value.info.is_fully_shaped for value in values)):
        return run(node)[: data.num_outputs]
    forms = _forms(node, outer_scope)[: data.num_outputs]
    types = [form for form in forms if isinstance(form, DataType)]
    if len(types) < data.num_outputs:
        return run(node)[: data.num_outputs]
    composite = ControlFlowNode(
        data,
        tuple(map(form_of, items)),
        tuple(outer_scope.items),
        scope.child({}, scope.reads),
        walker.functions,
        tuple(types),
    )
    return walker.layers(data.name, composite, values)


def _forms(node: ControlNode, outer_scope: OuterScope) -> Sequence[Form]:
    """Return the forms of a node's outputs, found once for its graphs' inputs and context.

    Notes
    -----
    Graphs around this one are walked again when their shapes are known. What the node gives stays
    the same then, and without this a graph would be walked once per graph around it.
    """
    known_forms, scope = node.walker.functions.forms, node.scope
    graphs = tuple(_graphs_of(node.data).values())
    key = (
        node.data.kind,
        tuple(map(id, graphs)),
        id(scope.attributes),
        tuple(map(form_of, node.inputs)),
        tuple((name, form_of(item)) for name, item in outer_scope.items.items()),
    )
    if key not in known_forms:
        forms = tuple(_trial(node, outer_scope))
        known_forms[key] = forms, (graphs, scope.attributes)  # which keeps their ids theirs
    return known_forms[key][0]


def _trial(node: ControlNode, outer_scope: OuterScope) -> list[Form]:
    """Return the forms of a node's outputs, of graphs that are added to nothing.

    Notes
    -----
    A branch that fits no known shapes may never be taken. It is refused here if it fits no others.
    """
    graphs = _graphs_of(node.data)
    if not graphs:
        raise node.data.error("the node has no graph")
    tried = {name: _tried(node, outer_scope, name) for name in graphs}
    refused = [name for name, (forms, _) in tried.items() if forms is None]
    if node.data.kind == "If" and len(refused) < len(graphs):
        again = (_tried(node, outer_scope, name, keeps_shapes=False) for name in refused)
        refused = [name for name, (forms, _) in zip(refused, again, strict=True) if forms is None]
    for name, (forms, refusals) in tried.items():
        if forms is not None or name in refused:
            node.walker.refusals.take(refusals)
    if refused:
        raise RefusedDependency
    *_, results = (forms for forms, _ in tried.values() if forms is not None)
    return results[1:] if node.data.kind == "Loop" else results


def _tried(
    node: ControlNode, outer_scope: OuterScope, name: str, *, keeps_shapes: bool = True
) -> tuple[list[Form] | None, Refusals]:
    """Forms of a graph's outputs, None if these depend on refused nodes, and all of those."""
    graph = _graphs_of(node.data)[name]
    infos = _trial_infos(node, len(graph.input))
    names = [f"input_{index}" for index in range(len(infos))]
    enclosed = outer_scope.enclosed(names, infos, keeps_shapes=keeps_shapes)
    enclosed.walker.refusals = Refusals()
    try:
        results = enclosed.walk(graph, enclosed.inputs, f"{node.data.name}/{name}/")
    except RefusedDependency:
        return None, enclosed.walker.refusals
    return [form_of(item) for item in results], enclosed.walker.refusals


def _trial_infos(node: ControlNode, count: int) -> list[TensorInfo]:
    """Return the descriptions of a graph's inputs, as far as they hold in every turn."""
    if node.data.kind == "If":
        return []
    own: Sequence[Item] = node.inputs
    if node.data.kind == "Loop":
        infos = [TensorInfo((), DataType.SIGNED64), TensorInfo((), DataType.BOOLEAN)]
        own = own[2:]
    else:
        infos = []
        own = own[1:] if node.data.version < 9 else own
    return [*infos, *(value.info.with_shape(None) for value in tensors(own))]


_CONTROL: Mapping[str, Callable[[ControlNode], list[Item]]] = {
    "If": run_if,
    "Loop": run_loop,
    "Scan": run_scan,
}

STRUCTURES = {
    "If": _control,
    "Loop": _control,
    "Scan": _control,
}
