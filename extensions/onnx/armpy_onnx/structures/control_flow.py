"""ONNX's If, Loop and Scan: graphs that nodes run.

Notes
-----
What is known when nodes are walked is resolved there: a condition that is constant takes one
branch, and a short loop that runs a known number of times is written out. The rest becomes If and
While, whose graphs are handed what they read of the graphs around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import onnx

from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.control_flow import If, While
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
    Select,
)
from armpy.ops.generation import Range
from armpy.ops.reshaping import Reshape
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
from armpy_onnx.reading import kind_of, nodes_inside
from armpy_onnx.structures.functions import Functions
from armpy_onnx.structures.outer_scope import InnerGraph, OuterScope
from armpy_onnx.structures.walking import Refusals, RefusedDependency, Scope, Walker

MOST_UNROLLED_NODES = 256
"""Of a loop that is written out though it need not be."""

_WEIGHT_INSIDE = 32
"""How many plain nodes a node that runs graphs counts as: each copy has graphs of its own."""

MOST_TURNS = 4096
"""Of a loop that is written out because it carries sequences."""

MOST_PHANTOMS = 4
"""Loops in each other whose turns have to be tried out to know what they collect."""

_TRUE = np.array(True)


@dataclass(frozen=True, eq=False, slots=True)
class ControlNode:
    """A node that runs graphs."""

    walker: Walker
    data: NodeData
    inputs: Sequence[Item]
    scope: Scope  # what the graphs read from outside

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph that is an attribute."""
        found = self.data.attribute(name)
        if not isinstance(found, onnx.GraphProto):
            raise self.data.error(f"the attribute '{name}' is missing, or no graph")
        return found

    def inline(self, graph: onnx.GraphProto, given: Sequence[Item], label: str) -> list[Item]:
        """Outputs of a graph whose nodes are added here."""
        return self.walker.inlined(graph, given, self.scope, f"{self.data.name}/{label}/")

    def truth(self, item: Item) -> bool | None:
        """Return the known value of a condition; None if it is not known."""
        if not isinstance(item, Value):
            raise self.data.error("a condition is no tensor")
        if item.info.data_type is not DataType.BOOLEAN:
            raise self.data.error(
                "a condition has the wrong type", expected="bool", actual=item.info.data_type
            )
        return None if item.data is None else _single(self.data, item.data, "condition")


def _single(data: NodeData, array: object, what: str) -> bool:
    """The only element of an array."""
    elements = np.asarray(array).reshape(-1)
    if elements.size != 1:
        raise data.error(f"the {what} is not one element", actual=str(elements.size))
    return bool(elements[0])


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
        enclosed.finish(enclosed.walk(branch, (), f"{label}/")[:count])
        graphs.append(enclosed)
    one, other = graphs
    if one.forms != other.forms:
        condition = node.inputs[0]
        assert isinstance(condition, Value)
        raise UnknownElements([condition], "which sequences or optionals the branches give")
    if not one.results:
        return one.restored([])
    inputs = [tensors(node.inputs[:1])[0], *outer_scope.handed]
    made = node.walker.layers(node.data.name, If(one.build(), other.build()), inputs)
    return one.restored(made)


# Loops

Turn: TypeAlias = "Callable[[Walker, Scope, Value, Item, Sequence[Item], str], list[Item]]"
"""One turn: the walker and scope that it is added by, its number, the condition, what is carried,
and a label; gives the condition and what is carried, then what is collected."""


@dataclass(frozen=True, eq=False, slots=True)
class OnnxLoop:
    """A loop in what Loop and Scan have in common."""

    node: ControlNode
    body: onnx.GraphProto
    turn: Turn
    carried: Sequence[Item]
    num_collected: int  # outputs that are put together from all turns
    trips: Value | None  # how many turns there are at most
    condition: Value | None  # whether there is a first turn
    goes_on: bool  # whether the body never ends the loop

    def run(self) -> list[Item]:
        """Carried values after the last turn, then what has been collected."""
        node = self.node
        first = True if self.condition is None else node.truth(self.condition)
        count = self._count()
        if first is False:
            count = 0
        fixed = count if first is not None and (self.goes_on or count == 0) else None
        if fixed is not None and self._is_short(fixed):
            return self._unrolled(fixed)
        if not all(isinstance(item, Value) for item in self.carried):
            return self._unrolled(count, may_end=True)
        return _as_while(self, fixed)

    def _is_short(self, count: int) -> bool:
        """Return whether a number of turns may be written out, in those of the loops around it."""
        times = count * self.node.scope.turns
        if times * max(len(self.body.node), 1) > MOST_UNROLLED_NODES:
            return False
        kinds = (kind_of(node) for node in nodes_inside(self.body.node))
        weight = sum(_WEIGHT_INSIDE if kind in _CONTROL else 1 for kind in kinds)
        return times * max(weight, 1) <= MOST_UNROLLED_NODES

    def _count(self) -> int | None:
        """Return how many turns there are at most, as far as it is known."""
        if self.trips is None or self.trips.data is None:
            return None
        counts = self.node.data.whole(self.trips.data, "the number of turns")
        if len(counts) != 1:
            raise self.node.data.error("the number of turns is not one element")
        return max(counts[0], 0)

    def _unrolled(self, count: int | None, *, may_end: bool = False) -> list[Item]:
        """Every turn written out."""
        node, walker = self.node, self.node.walker
        scope = replace(node.scope, turns=node.scope.turns * max(count or 1, 1))
        decisive = [value for value in (self.trips, self.condition) if value is not None]
        waits = [value for value in decisive if value.data is None]
        if waits:
            raise UnknownElements(waits, "how often a loop that carries sequences runs")
        carried, rows = list(self.carried), []
        condition: Item = walker.constant(_TRUE)
        number = 0
        while count is None or number < count:
            if number == MOST_TURNS:
                raise node.data.error("the loop is too long to write it out", actual=str(count))
            turn = walker.constant(np.int64(number))
            made = self.turn(walker, scope, turn, condition, carried, f"{number}/")
            carried = made[1 : 1 + len(carried)]
            rows.append(made[1 + len(carried) :])
            number += 1
            if may_end:
                goes_on = node.truth(made[0])
                if goes_on is None:
                    raise node.data.error("a loop that carries sequences ends as elements say")
                if not goes_on:
                    break
        collected = [self._joined([row[i] for row in rows], i) for i in range(self.num_collected)]
        return [*carried, *collected]

    def _joined(self, items: Sequence[Item], number: int) -> Value:
        """Join the collected results of all turns as one tensor."""
        walker = self.node.walker
        if not items:
            return self.nothing(number)
        label = self.node.data.name
        rows = [walker.call("Unsqueeze", v, [0], label=label) for v in tensors(items)]
        return rows[0] if len(rows) == 1 else walker.call("Concat", *rows, label=label, axis=0)

    def nothing(self, number: int) -> Value:
        """Return the collected results of no turn at all."""
        info = self.given()[1 + len(self.carried) + number]
        return self.node.walker.zeros(_rows(self, info, 0), info.data_type)

    def given(self) -> list[TensorInfo]:
        """Return the results of a turn: the condition, carried values and collected ones."""
        outer_scope = OuterScope(self.node.walker, self.node.scope, [self.body])
        own = [value.info for value in tensors(self.carried)]
        counters = [TensorInfo((), DataType.SIGNED64), TensorInfo((), DataType.BOOLEAN)]
        names = [f"given_{number}" for number in range(len(own) + 2)]
        inner = outer_scope.enclosed(names, [*counters, *own])
        number, condition, *state = inner.inputs
        made = tensors(self.turn(inner.walker, inner.scope, number, condition, state, "given/"))
        infos = [value.info for value in made]
        if all(info.is_fully_shaped for info in infos[1 + len(own) :]):
            return infos
        return self._phantom()

    def _phantom(self) -> list[TensorInfo]:
        """Return the results of a turn that is added without a reader, so that it never runs.

        Notes
        -----
        Loops inside are added for it and for the turns that run, so this doubles the work with
        every loop around; hence the limit.
        """
        walker, node = self.node.walker, self.node
        scope = replace(node.scope, phantoms=node.scope.phantoms + 1)
        if scope.phantoms > MOST_PHANTOMS:
            raise node.data.error(
                "the shape of what loops in loops collect is not known",
                expected=f"at most {MOST_PHANTOMS} such loops in each other",
            )
        number = walker.constant(np.int64(0))
        made = self.turn(walker, scope, number, walker.constant(_TRUE), self.carried, "phantom/")
        return [value.info for value in tensors(made)]


def _rows(loop: OnnxLoop, info: TensorInfo, count: int) -> tuple[int, ...]:
    """Shape of what is collected of a number of turns."""
    shape = info.shape
    if shape is None or (count and None in shape):
        raise loop.node.data.error("the shape of what the loop collects is not known")
    return (count, *(0 if dim is None else dim for dim in shape))


def _as_while(loop: OnnxLoop, fixed: int | None) -> list[Item]:
    """A loop as While.

    Notes
    -----
    Carried are the turn's number, the condition, what the loop carries, and what it has collected:
    as many rows as there are turns where that is known, or one more every turn.
    """
    node, walker = loop.node, loop.node.walker
    given = loop.given()
    num_carried = len(loop.carried)
    carried = tensors(loop.carried)
    collected = given[1 + num_carried :]
    if any(not info.is_fully_shaped for info in collected):
        fixed = None
    start = [
        walker.constant(np.int64(0)),
        walker.constant(_TRUE) if loop.condition is None else loop.condition,
        *carried,
        *(walker.zeros(_rows(loop, info, fixed or 0), info.data_type) for info in collected),
    ]
    infos = [value.info for value in start]
    for index, (before, after) in enumerate(zip(carried, given[1:], strict=False)):
        infos[2 + index] = _widened(before.info, after.shape)
    if fixed is None:
        for index in range(2 + num_carried, len(infos)):
            infos[index] = infos[index].with_shape((None, *infos[index].known_shape[1:]))
    outer_scope = OuterScope(walker, node.scope, [loop.body], extra=[loop.trips])
    # A body can widen what it is given: each turn here opens a dimension or a rank at least, and
    # there are no more of them than this.
    for _ in range(2 + sum(len(info.shape or ()) + 1 for info in infos)):
        body = _body(loop, outer_scope, infos, fixed)
        wider = [
            _widened(before, value.info.shape)
            for before, value in zip(infos, body.results, strict=True)
        ]
        if [info.shape for info in wider] == [info.shape for info in infos]:
            break
        infos = wider
    condition = _condition(loop, outer_scope, infos, fixed)
    operation = While(condition.build(), body.build())
    made = walker.layers(node.data.name, operation, [*start, *outer_scope.handed])
    return list(made[2:])


def _widened(info: TensorInfo, other: Shape | None) -> TensorInfo:
    if info.shape is None or other is None or len(info.shape) != len(other):
        return info.with_shape(None) if other is not None or info.shape is None else info
    pairs = zip(info.shape, other, strict=True)
    return info.with_shape(tuple(a if b is None or a == b else None for a, b in pairs))


def _body(
    loop: OnnxLoop, outer_scope: OuterScope, infos: Sequence[TensorInfo], fixed: int | None
) -> InnerGraph:
    label = loop.node.data.name
    names = [f"carried_{number}" for number in range(len(infos))]
    inner = outer_scope.enclosed(names, infos)
    walker, (number, condition, *state) = inner.walker, inner.inputs
    num_carried = len(loop.carried)
    made = tensors(loop.turn(walker, inner.scope, number, condition, state[:num_carried], ""))
    rows = []
    for before, value in zip(state[num_carried:], made[1 + num_carried :], strict=True):
        row = walker.call("Unsqueeze", value, [0], label=label)
        if fixed is None:
            rows.append(walker.call("Concat", before, row, label=label, axis=0))
            continue
        column = Reshape((fixed, *(1,) * (len(before.info.known_shape) - 1)))
        numbers = walker.layer(label, Range(0, fixed, 1, DataType.SIGNED64))
        turns = walker.layer(label, column, numbers)
        here = walker.layer(label, Comparison(ComparisonOperation.EQUAL), turns, number)
        rows.append(walker.layer(label, Select(), here, row, before))
    one = walker.constant(np.int64(1))
    following = walker.layer(label, ElementwiseBinary(BinaryOperation.ADD), number, one)
    inner.finish([following, made[0], *made[1 : 1 + num_carried], *rows])
    return inner


def _condition(
    loop: OnnxLoop, outer_scope: OuterScope, infos: Sequence[TensorInfo], fixed: int | None
) -> InnerGraph:
    """The graph that says whether there is another turn."""
    label = loop.node.data.name
    names = [f"carried_{number}" for number in range(len(infos))]
    inner = outer_scope.enclosed(names, infos)
    walker, (number, condition, *_) = inner.walker, inner.inputs
    result: Value = condition
    if loop.trips is not None:
        trips = inner.of(loop.trips)
        result = walker.layer(label, Comparison(ComparisonOperation.LESS), number, trips)
        if fixed is None:
            both = LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)
            result = walker.layer(label, both, result, condition)
    inner.finish([result])
    return inner


def run_loop(node: ControlNode) -> list[Item]:
    """Outputs of a Loop."""
    body = node.graph("body")
    inputs = [*node.inputs, None, None]
    trips, condition = inputs[:2]
    carried = node.inputs[2:]
    if len(body.input) != 2 + len(carried) or len(body.output) < 1 + len(carried):
        raise node.data.error(
            "the body does not take and give what the loop carries",
            expected=f"{2 + len(carried)} inputs",
            actual=f"{len(body.input)} inputs and {len(body.output)} outputs",
        )
    decisive = [value for value in (trips, condition) if value is not None]
    if len(tensors(decisive)) != len(decisive):
        raise ParserError("a loop's number of turns or condition is no tensor")

    def turn(
        walker: Walker, scope: Scope, number: Value, go: Item, state: Sequence[Item], label: str
    ) -> list[Item]:
        where = f"{node.data.name}/{label}"
        return walker.inlined(body, [number, go, *state], scope, where)

    loop = OnnxLoop(
        node,
        body,
        turn,
        carried,
        len(body.output) - 1 - len(carried),
        trips if isinstance(trips, Value) else None,
        condition if isinstance(condition, Value) else None,
        _always_goes_on(node, body),
    )
    return loop.run()[: node.data.num_outputs]


def _always_goes_on(node: ControlNode, body: onnx.GraphProto) -> bool:
    """Return whether a body gives the condition that it is given, or a constant that is true."""
    name = body.output[0].name
    made = {output: inner for inner in body.node for output in inner.output}
    while name in made and made[name].op_type == "Identity" and len(made[name].input) == 1:
        name = made.pop(name).input[0]
    if len(body.input) > 1 and name == body.input[1].name:
        return True
    constants = {tensor.name: tensor for tensor in body.initializer}
    if name in made and made[name].op_type == "Constant":
        constants.update((name, a.t) for a in made[name].attribute if a.name == "value")
    if name in constants:
        external = node.walker.functions.external
        array, _ = external.read(constants[name], f"{node.data.label}, condition '{name}'")
        return bool(np.all(array))
    outer = node.scope.values.get(name) if name not in made else None
    return isinstance(outer, Value) and outer.data is not None and bool(np.all(outer.data))


# Scan


def run_scan(node: ControlNode) -> list[Item]:
    """Outputs of a Scan."""
    if node.data.version < 9:
        return _batched_scan(node)
    return _scan(node, tensors(node.inputs))


def _batched_scan(node: ControlNode) -> list[Item]:
    """Outputs of a Scan of opset 8, which has a batch in front of everything."""
    lengths, *given = node.inputs
    if lengths is not None:
        raise node.data.error("lengths of sequences are not supported")
    inputs, walker, label = tensors(given), node.walker, node.data.name
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
    given = node.data.attribute(name) or [0] * len(values)
    ranks = [len(value.info.known_shape) + extra for value in values]
    if len(given) != len(values) or any(
        not -rank <= axis < rank for axis, rank in zip(given, ranks, strict=True)
    ):
        raise node.data.error(f"the attribute '{name}' does not fit", actual=str(given))
    return [axis % rank for axis, rank in zip(given, ranks, strict=True)]


def _backwards(node: ControlNode, names: Sequence[str], count: int) -> list[bool]:
    """Return whether a Scan goes from the end, per operand."""
    found = next((found for name in names if (found := node.data.attribute(name))), [0] * count)
    if len(found) != count:
        raise node.data.error(f"the attribute '{names[0]}' does not fit", actual=str(found))
    return [bool(item) for item in found]


def _scan(node: ControlNode, inputs: Sequence[Value]) -> list[Item]:
    """Outputs of a Scan without a batch."""
    body, num_inputs = node.graph("body"), node.data.attribute("num_scan_inputs")
    if not isinstance(num_inputs, int) or not 1 <= num_inputs <= len(inputs):
        raise node.data.error("the attribute 'num_scan_inputs' does not fit", actual=num_inputs)
    num_carried = len(inputs) - num_inputs
    num_collected = len(body.output) - num_carried
    if len(body.input) != len(inputs) or num_collected < 0:
        raise node.data.error("the body does not take and give what the scan carries")
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
    made = OnnxLoop(around, body, turn, carried, num_collected, trips, None, True).run()
    collected = tensors(made[num_carried:])
    return [*made[:num_carried], *_arranged(node, collected)][: node.data.num_outputs]


_SCANNED = "\0scanned "
"""Names of what is scanned, which no file can use."""


def _arranged(node: ControlNode, collected: Sequence[Value]) -> list[Item]:
    """Arrange a scan's collected results along axis 0 in the wanted order and axes."""
    walker, label = node.walker, node.data.name
    axes = _axes(node, "scan_output_axes", collected, 0)
    backwards = _backwards(node, ("scan_output_directions",), len(collected))
    arranged: list[Item] = []
    for value, axis, from_end in zip(collected, axes, backwards, strict=True):
        made, rank = value, len(value.info.known_shape)
        if from_end:
            ends = [[-1], [-(2**63) + 1], [0], [-1]]
            made = walker.call("Slice", made, *ends, label=label)
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            made = walker.call("Transpose", made, label=label, perm=order)
        arranged.append(made)
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
        """As many as the file names."""
        return len(self.types)

    def decides(self, index: int) -> bool:
        """Nothing does: what is known is used."""
        return False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing is known yet."""
        return (None,) * len(self.types)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """As the graphs give them."""
        return self.types

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Run the node with what is known now."""
        refusals = Refusals()
        walker = Walker(build, self.functions, refusals, folds=True)
        given = [value for value in inputs if value is not None]
        items = formed(given, self.forms)
        own = len(items) - len(self.names)
        scope = self.scope.child(dict(zip(self.names, items[own:], strict=True)), self.scope.reads)
        try:
            made = _CONTROL[self.data.kind](ControlNode(walker, self.data, items[:own], scope))
        except RefusedDependency:
            made = []
        except UnknownElements as waiting:
            raise self.data.error(f"elements decide {waiting.what}") from waiting
        refusals.check()
        return tensors(made[: len(self.types)])


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
    found, scope = node.walker.functions.forms, node.scope
    graphs = tuple(_graphs_of(node.data).values())
    key = (
        node.data.kind,
        tuple(map(id, graphs)),
        id(scope.attributes),
        tuple(map(form_of, node.inputs)),
        tuple((name, form_of(item)) for name, item in outer_scope.items.items()),
    )
    if key not in found:
        forms = tuple(_trial(node, outer_scope))
        found[key] = forms, (graphs, scope.attributes)  # which keeps their ids theirs
    return found[key][0]


def _trial(node: ControlNode, outer_scope: OuterScope) -> list[Form]:
    """Return the forms of a node's outputs, of graphs that are added to nothing."""
    graphs = _graphs_of(node.data)
    if not graphs:
        raise node.data.error("the node has no graph")
    forms: list[Form] = []
    is_lost = False
    for attribute, graph in graphs.items():
        infos = _trial_infos(node, len(graph.input))
        names = [f"input_{index}" for index in range(len(infos))]
        enclosed = outer_scope.enclosed(names, infos)
        try:
            made = enclosed.walk(graph, enclosed.inputs, f"{node.data.name}/{attribute}/")
        except RefusedDependency:  # what is wrong with the other graph is told, too
            is_lost = True
            continue
        forms = [form_of(item) for item in made]
    if is_lost:
        raise RefusedDependency
    return forms[1:] if node.data.kind == "Loop" else forms


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
