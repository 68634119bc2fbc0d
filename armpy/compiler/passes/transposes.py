"""Pass that cancels transposes, also where layers lie between them that can do without."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from armpy.compiler.passes.context import PassContext
from armpy.compiler.passes.layout_propagation import (
    Permutation,
    PermutedLayer,
    composed,
    identity,
    inverse,
    permuted_constant,
    permuted_from_input,
    permuted_from_output,
    permuted_info,
)
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter
from armpy.ops.movement import Transpose
from armpy.tensor import TensorInfo


def cancel_transposes(graph: Graph, context: PassContext) -> Graph:
    """Compute layers with their axes in another order where fewer elements are transposed so.

    Consecutive transposes become one or none. Around each transpose the layers are found that can
    be computed in the order of its other side: elementwise layers, concatenations, pads, slices,
    reductions, reshapes that keep the axes apart. Which of them are is chosen so that the
    transposes that are left move the fewest elements; nothing is changed unless that is less than
    before, and no more transposes. Every layer stays on its backend.

    References
    ----------
    Arm NN OptimizeInversePermutes, OptimizeInverseTransposes, MovePermuteUp, MoveTransposeUp.
    """
    # Neighbours first: joining them needs no choice, and leaves fewer regions to look at.
    if any(_follows_transpose(graph, layer) for layer in graph.layers):
        graph = _PermutationMover(graph, {}).graph()
    # It ends, as each round is cheaper than the last one, in whole numbers.
    while (better := _better(graph, context)) is not None:
        graph = better
    return graph


def _better(graph: Graph, context: PassContext) -> Graph | None:
    """A graph that transposes less; None if none is found."""
    choices = _choices(graph, context)
    together = {layer: permuted for choice in choices for layer, permuted in choice.items()}
    # Costs of a choice do not include transposes that read the results of others.
    for permuted_layers in (together, *choices) if len(choices) > 1 else choices:
        moved = _PermutationMover(graph, permuted_layers).graph()
        if any(_follows_transpose(moved, layer) for layer in moved.layers):
            moved = _PermutationMover(moved, {}).graph()
        (before, number), (after, fewer) = _transposed(graph), _transposed(moved)
        if after < before and fewer <= number:
            return moved
    return None


def _transposed(graph: Graph) -> tuple[int, int]:
    """Return the cost of a graph's transposes, and their number."""
    perms = [(layer, perm) for layer in graph.layers if (perm := _perm(layer)) is not None]
    return sum(_weight(layer["input"].info, perm) for layer, perm in perms), len(perms)


def _perm(layer: Layer | None) -> Permutation | None:
    """The order that a transpose gives the axes; None if a layer is none, or scales would move."""
    if layer is None or not isinstance(layer.operation, Transpose):
        return None
    perm = layer.operation.perm
    if perm is None or layer.output.info.has_per_axis_quantization:
        return None
    return tuple(axis % len(perm) for axis in perm)


def _follows_transpose(graph: Graph, layer: Layer) -> bool:
    """Return whether a transpose reads what another one gives."""
    return (
        _perm(layer) is not None and _perm(graph.producers.get(layer.inputs[0])) is not None  # type: ignore[arg-type]  # a transpose has an input
    )


@dataclass(eq=False)
class _Region:
    """Layers that can be computed with their axes in other orders, together."""

    orders: dict[Value, Permutation] = field(default_factory=dict)
    permuted_layers: dict[Layer, PermutedLayer] = field(default_factory=dict)


def _choices(graph: Graph, context: PassContext) -> list[dict[Layer, PermutedLayer]]:
    """Layers that are better computed with their axes in another order, region by region."""
    choices: list[dict[Layer, PermutedLayer]] = []
    tried: set[tuple[Value, Permutation]] = set()
    claimed: set[Value] = set()
    for layer in graph.layers:
        order = _perm(layer)
        # Of the input and output of a transpose the order on its other side.
        sides = [(layer["input"], order), (layer.output, inverse(order))] if order else []
        for value, perm in sides:
            if (value, perm) in tried:
                continue
            region = _region(graph, context, value, perm)
            # From any of these the same region would be found again.
            tried.update(region.orders.items())
            costs = list(_costs(graph, region))
            layers = cheapest(costs)
            values = {
                value for key in region.permuted_layers if key in layers for value in _values(key)
            }
            (less, fewer), (most, number) = total(costs, layers), total(costs, frozenset())
            # Two choices about one tensor were counted apart, and need not go together.
            if less < most and fewer <= number and claimed.isdisjoint(values):
                claimed |= values
                choices.append(
                    {
                        key: permuted
                        for key, permuted in region.permuted_layers.items()
                        if key in layers
                    }
                )
    return choices


def _values(layer: Layer) -> Iterator[Value]:
    """Return the inputs and outputs of a layer, without constants."""
    for value in (*layer.inputs, *layer.outputs):
        if value is not None and value.data is None:
            yield value


def _region(graph: Graph, context: PassContext, value: Value, perm: Permutation) -> _Region:
    """All layers joined to a value that can be computed if it has its axes in another order."""
    region = _Region({value: perm})
    waiting = [value]
    while waiting:
        value = waiting.pop()
        perm = region.orders[value]
        producer = graph.producers.get(value)
        pairs = []
        if (
            producer is not None
            and producer not in region.permuted_layers
            and producer.outputs[0] is value
        ):
            pairs.append((producer, permuted_from_output(producer, perm)))
        pairs += [
            (layer, permuted_from_input(layer, perm))
            for layer in dict.fromkeys(graph.consumers.get(value, ()))
            if layer not in region.permuted_layers
        ]
        for layer, permuted in pairs:
            if permuted is None or layer in region.permuted_layers:
                continue
            orders = _orders(layer, permuted)
            if orders is None or orders.get(value) != perm:
                continue
            # A value of two orders in a region would be transposed within it.
            if any(region.orders.get(member, order) != order for member, order in orders.items()):
                continue
            if _stays(context, layer, permuted):
                region.permuted_layers[layer] = permuted
                waiting += [member for member in orders if member not in region.orders]
                region.orders |= orders
    return region


def _orders(layer: Layer, permuted: PermutedLayer) -> dict[Value, Permutation] | None:
    """The orders that a permuted layer's values have; None if one would have two."""
    orders: dict[Value, Permutation] = {}
    pairs = zip((*layer.inputs, *layer.outputs), (*permuted.inputs, *permuted.outputs), strict=True)
    for value, perm in pairs:
        if value is None or value.data is not None:
            continue
        if perm is not None and orders.setdefault(value, perm) != perm:
            return None
    return orders


def _stays(context: PassContext, layer: Layer, permuted: PermutedLayer) -> bool:
    """Return whether a layer stays on its backend with its axes in the other order."""
    inputs: list[Value | None] = []
    for value, perm in zip(layer.inputs, permuted.inputs, strict=True):
        if value is None or perm is None:
            inputs.append(value)
        elif value.data is not None:
            inputs.append(permuted_constant(value, perm))
        else:
            inputs.append(Value(value.id, permuted_info(value.info, perm), value.name))
    return context.stays(layer, permuted.operation, inputs, _permuted_outputs(layer, permuted))


def _permuted_outputs(layer: Layer, permuted: PermutedLayer) -> list[TensorInfo]:
    """A layer's outputs with their axes in the other order."""
    pairs = zip(layer.outputs, permuted.outputs, strict=True)
    return [permuted_info(value.info, perm) for value, perm in pairs]


def _weight(info: TensorInfo, perm: Permutation) -> int:
    """Return the cost of transposing a tensor: nothing, next to nothing, or every element."""
    if identity(perm):
        return 0
    axes = [axis for axis in perm if info.known_shape[axis] != 1]
    # One more than the elements, so that of equal ways the one with fewer transposes wins.
    return 1 if axes == sorted(axes) else 1 + info.num_elements


def _costs(graph: Graph, region: _Region) -> Iterator[Cost]:
    """Return the transposed values by the permuted layers of a region."""
    for value, perm in region.orders.items():
        costs = _costs_of(graph, region, value, perm)
        # A cost that depends on no choice is paid in any case, and only makes the search longer.
        yield from (cost for cost in costs if cost.weight and (cost.chosen or cost.other))


def _costs_of(graph: Graph, region: _Region, value: Value, perm: Permutation) -> Iterator[Cost]:
    """Return the cost of transposing one value.

    Its writer gives it in one order; it is transposed at most once for readers of the other
    order. A transpose reads whichever there is.
    """
    # Callers read results in the order that they know.
    readers, is_plain, is_permuted = [], value in graph.result_set, False
    producer = graph.producers.get(value)
    is_inside = producer in region.permuted_layers
    for layer in dict.fromkeys(graph.consumers.get(value, ())):
        order = _perm(layer)
        if layer in region.permuted_layers:
            readers.append(layer)
        elif order == perm:
            is_permuted = True
        elif order is None:
            is_plain = True
        elif is_inside:
            rest = composed(inverse(perm), order)
            permuted = permuted_info(value.info, perm)
            yield Cost(_weight(permuted, rest), (producer,), ())
            yield Cost(_weight(value.info, order), (), (producer,))
    plain, permuted_readers = (
        tuple(() if is_plain else readers),
        tuple(() if is_permuted else readers),
    )
    weight = _weight(value.info, perm)
    above = _perm(producer)
    if is_inside:
        if is_plain or readers:
            yield Cost(weight, (producer,), plain)
        if is_permuted or readers:
            yield Cost(weight, permuted_readers, (producer,))
    elif producer is not None and above is not None:
        source = producer["input"].info
        yield Cost(_weight(source, composed(above, perm)), permuted_readers, ())
        yield Cost(_weight(source, above), (), plain)
    else:
        yield Cost(weight, permuted_readers, ())


class _PermutationMover:
    """A graph in which some layers are computed with their axes in another order."""

    def __init__(self, graph: Graph, permuted_layers: Mapping[Layer, PermutedLayer]) -> None:
        self._graph = graph
        self._permuted_layers = permuted_layers
        self._rewriter = Rewriter(graph)
        # The order in which a permuted layer writes a value, and transposed values.
        self._given: dict[Value, tuple[Value, Permutation]] = {}
        self._made: dict[tuple[Value, Permutation], Value] = {}

    def graph(self) -> Graph:
        """The new graph."""
        for layer in self._graph.layers:
            perm = _perm(layer)
            if layer in self._permuted_layers:
                self._add_permuted(layer, self._permuted_layers[layer])
            elif perm is not None:
                self._rewriter.alias(layer.output, self._in_order(layer["input"], perm, layer))
            else:
                for value in layer.inputs:
                    self._make_plain(value)
                self._rewriter.keep(layer)
        for value in self._graph.results:
            self._make_plain(value)
        return self._rewriter.finish()

    def _add_permuted(self, layer: Layer, permuted: PermutedLayer) -> None:
        """Add a layer with its axes in the other order."""
        inputs: list[Value | None] = []
        for value, perm in zip(layer.inputs, permuted.inputs, strict=True):
            if value is None or perm is None:
                self._make_plain(value)
                inputs.append(value and self._rewriter.mapped(value))
            else:
                inputs.append(self._in_order(value, perm))
        turned = self._rewriter.replace(
            layer, permuted.operation, inputs, _permuted_outputs(layer, permuted)
        )
        for value, new, perm in zip(layer.outputs, turned.outputs, permuted.outputs, strict=True):
            self._given[value] = new, perm

    def _make_plain(self, value: Value | None) -> None:
        """Have a value in the order that it had."""
        if value in self._given:
            assert value is not None
            perm = tuple(range(len(self._given[value][1])))
            self._rewriter.alias(value, self._in_order(value, perm))

    def _in_order(self, value: Value, perm: Permutation, layer: Layer | None = None) -> Value:
        """A value with its axes in an order; `layer` is the transpose that gives it so."""
        if value.data is not None:
            permuted = permuted_constant(value, perm)
            assert permuted.data is not None
            return self._rewriter.constant(permuted.data, permuted.info, value.name)
        producer = self._graph.producers.get(value)
        above = _perm(producer)
        # From in front of that transpose, so that none reads another.
        if producer is not None and above is not None:
            return self._in_order(producer["input"], composed(above, perm), layer)
        mapped, order = self._given.get(value) or (
            self._rewriter.mapped(value),
            tuple(range(len(perm))),
        )
        rest = composed(inverse(order), perm)
        if identity(rest):
            return mapped
        # Once for all readers that want this order.
        if (value, perm) not in self._made:
            operation = Transpose(rest)
            if layer is not None:
                turned = self._rewriter.replace(layer, operation, [mapped])
            else:
                info = permuted_info(mapped.info, rest)
                turned = self._rewriter.insert(operation, [mapped], f"{value.name}/turned", [info])
            self._made[value, perm] = turned.output
        return self._made[value, perm]


_SOURCE, _SINK = "source", "sink"


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a choice if any of some layers is chosen and any of others is not."""

    weight: int
    # `chosen` and `other`: an empty one stands for something that is always so.
    chosen: tuple[Hashable, ...]
    other: tuple[Hashable, ...]

    def applies(self, chosen: frozenset[Hashable]) -> bool:
        """Return whether a choice has to pay."""
        pays = not self.chosen or not chosen.isdisjoint(self.chosen)
        return pays and (not self.other or not chosen.issuperset(self.other))


def cheapest(costs: Sequence[Cost]) -> frozenset[Hashable]:
    """The layers to choose so that the sum of all costs is the least that is possible.

    References
    ----------
    Kolmogorov and Zabih, "What Energy Functions Can Be Minimized via Graph Cuts?", 2004; Edmonds
    and Karp, "Theoretical Improvements in Algorithmic Efficiency for Network Flow Problems", 1972.
    """
    room: defaultdict[Hashable, dict[Hashable, float]] = defaultdict(dict)

    def join(start: Hashable, end: Hashable, capacity: float) -> None:
        room[start][end] = room[start].get(end, 0) + capacity
        # The way back is there from the beginning, so that later paths can undo flow.
        room[end].setdefault(start, 0)

    for index, cost in enumerate(costs):
        start: Hashable = ("any", index) if cost.chosen else _SOURCE
        end: Hashable = ("all", index) if cost.other else _SINK
        for layer in cost.chosen:
            # Uncuttable edges tie a group to its node: one chosen layer is enough to pay, once.
            join(layer, start, float("inf"))
        join(start, end, cost.weight)
        for layer in cost.other:
            join(end, layer, float("inf"))
    while (path := _shortest_path(room)) is not None:
        flow = min(room[start][end] for start, end in path)
        for start, end in path:
            room[start][end] -= flow
            room[end][start] += flow
    layers = frozenset(layer for cost in costs for layer in (*cost.chosen, *cost.other))
    # With no path left, the nodes within reach of the source are one side of a cheapest cut.
    return layers.intersection(_reached(room))


def _reached(room: dict[Hashable, dict[Hashable, float]]) -> dict[Hashable, Hashable]:
    """Return the room that can be reached from the source, with the way to it."""
    reached: dict[Hashable, Hashable] = {_SOURCE: None}
    waiting = deque([_SOURCE])
    while waiting:
        start = waiting.popleft()
        for end, capacity in room.get(start, {}).items():
            if capacity > 0 and end not in reached:
                reached[end] = start
                waiting.append(end)  # type: ignore[arg-type]  # nodes are of any kind
    return reached


def _shortest_path(
    room: dict[Hashable, dict[Hashable, float]],
) -> list[tuple[Hashable, Hashable]] | None:
    """The edges of a shortest way from the source to the sink; None if there is none left."""
    reached = _reached(room)
    if _SINK not in reached:
        return None
    path: list[tuple[Hashable, Hashable]] = []
    end: Hashable = _SINK
    while end != _SOURCE:
        path.append((reached[end], end))
        end = reached[end]
    return path


def total(costs: Iterable[Cost], chosen: frozenset[Hashable]) -> tuple[int, int]:
    """The sum of what a choice pays, and how many costs that are."""
    paid = [cost.weight for cost in costs if cost.applies(chosen)]
    return sum(paid), len(paid)
