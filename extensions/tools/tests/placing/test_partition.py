from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

import pytest

from armpy.graph import Graph, Layer, Value
from armpy.graph.network import Network
from armpy.types import HOST, BackendId
from armpy_testing.models.networks import ADD, chain, diamond, f32
from armpy_tools.placement.partition import Choices, cost_of, partition

BACKENDS = ("A", "B", "C")
PLACES = (*BACKENDS, HOST)  # where the core itself runs control flow


class Table:
    """Costs by names, as tests write them; a crossing is `entry` unless it is named."""

    def __init__(
        self,
        layers: Mapping[tuple[str, BackendId], float],
        entry: float = 0.0,
        crossings: Mapping[tuple[str, BackendId, BackendId], float] | None = None,
    ) -> None:
        self.layers = layers
        self.entry = entry
        self.crossings = crossings or {}

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        return self.layers[layer.name, backend_id]

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        return self.crossings.get((value.name, source, target), self.entry)


def everywhere(graph: Graph, *backends: BackendId) -> Choices:
    """Every layer may run on every backend."""
    return {layer.id: backends for layer in graph.layers}


def least_by_trying_all(graph: Graph, choices: Choices, table: Table) -> float:
    """The smallest sum over all placements, written without the partitioner's notions."""
    least = float("inf")
    for chosen in product(*(choices[layer.id] for layer in graph.layers)):
        at = dict(zip(graph.layers, chosen, strict=True))
        total = sum(table.layers[layer.name, backend] for layer, backend in at.items())
        for value in (*graph.inputs, *(v for layer in graph.layers for v in layer.outputs)):
            writer = graph.producers.get(value)
            home = HOST if writer is None else at[writer]
            readers = {at[layer] for layer in graph.layers if value in layer.inputs}
            if value in graph.outputs:
                readers.add(HOST)
            total += sum(table.crossing(value, home, r) for r in readers - {home})
        least = min(least, total)
    return least


def random_graph(numbers: random.Random, length: int) -> Graph:
    """Additions that read one or two tensors before them; unread tensors are results."""
    net = Network("random")
    values = [net.input("x", f32(4)), net.input("y", f32(4))]
    unread: list[Value] = []
    for index in range(length):
        reads = [values[numbers.randrange(len(values))] for _ in range(2)]
        values.append(net.add(ADD, *reads, name=f"n{index}"))
        unread = [value for value in unread if value not in reads] + [values[-1]]
    for value in dict.fromkeys((*unread, *values[2:5])):  # some are read as well
        net.output(f"result of {value.name}", value)
    return net.build()


def random_table(numbers: random.Random, graph: Graph, scale: float) -> Table:
    """Costs between 0 and 10, crossings up to `scale`, each of its own."""
    values = [*graph.inputs, *(v for layer in graph.layers for v in layer.outputs)]
    return Table(
        {(layer.name, b): numbers.uniform(0, 10) for layer in graph.layers for b in PLACES},
        crossings={
            (v.name, s, t): numbers.uniform(0, scale)
            for v in values
            for s in PLACES
            for t in PLACES
        },
    )


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(8))
def test_no_placement_of_a_small_graph_costs_less(seed: int, scale: float) -> None:
    numbers = random.Random(seed)
    graph = random_graph(numbers, 7)
    table = random_table(numbers, graph, scale)
    choices = {
        layer.id: sorted(numbers.sample(PLACES, numbers.randint(1, 3))) for layer in graph.layers
    }
    result = partition(graph, choices, table)
    assert result.is_cheapest
    assert result.cost == pytest.approx(least_by_trying_all(graph, choices, table))
    assert result.cost == pytest.approx(cost_of(graph, result.backends, table))
    assert all(result.backends[layer.id] in choices[layer.id] for layer in graph.layers)


def test_a_long_chain_is_placed_exactly() -> None:
    numbers, graph = random.Random(1), chain(200)
    table = random_table(numbers, graph, 5.0)
    result = partition(graph, everywhere(graph, *BACKENDS), table, width=12)
    assert result.is_cheapest
    # Viterbi's algorithm, the other way round: what each place costs from here to the end.
    names = [value.name for layer in graph.layers for value in layer.outputs]
    ahead = {b: table.crossing(graph.outputs[0], b, HOST) for b in BACKENDS}
    for layer, read in reversed([*zip(graph.layers, ["x", *names], strict=False)]):
        inside = {b: table.layers[layer.name, b] + ahead[b] for b in BACKENDS}
        ahead = {
            source: min(
                inside[b] + (0 if b == source else table.crossings[read, source, b])
                for b in BACKENDS
            )
            for source in (*BACKENDS, HOST)
        }
    assert result.cost == pytest.approx(ahead[HOST])


def test_a_device_that_is_better_at_one_layer_does_not_get_it_if_copies_cost_more() -> None:
    graph = chain(3)
    costs = {(f"add_{i}", b): 10.0 for i in range(3) for b in "AB"}
    costs |= {("add_0", "B"): 30.0, ("add_1", "B"): 3.0, ("add_2", "B"): 30.0}
    choices = everywhere(graph, "A", "B")
    assert [*partition(graph, choices, Table(costs, 3.0)).backends.values()] == ["A", "B", "A"]
    assert [*partition(graph, choices, Table(costs, 4.0)).backends.values()] == ["A", "A", "A"]


def test_a_tensor_is_handed_to_a_backend_once_however_many_layers_read_it() -> None:
    graph = diamond()
    layers = {(layer.name, b): 0.0 for layer in graph.layers for b in "AB"}
    costs = layers | {(n, "A"): 9.0 for n in ("left", "right", "bottom")} | {("top", "B"): 20.0}
    result = partition(graph, everywhere(graph, "A", "B"), Table(costs, 1.0))
    assert [*result.backends.values()] == ["A", "B", "B", "B"]
    assert result.cost == 3.0  # the input to A, one tensor to B, the output to the caller


def test_of_equal_placements_that_of_preferred_backends_is_taken() -> None:
    graph = diamond()
    table = Table({(layer.name, b): 1.0 for layer in graph.layers for b in "AB"}, 1.0)
    for order in (("A", "B"), ("B", "A")):
        result = partition(graph, everywhere(graph, *order), table)
        assert set(result.backends.values()) == {order[0]}


@pytest.mark.slow
def test_a_graph_that_is_too_wide_is_placed_well_and_says_that_it_may_not_be_the_best() -> None:
    numbers = random.Random(3)
    graph = random_graph(numbers, 40)
    table = random_table(numbers, graph, 8.0)
    choices = everywhere(graph, *BACKENDS)
    narrow, wide = partition(graph, choices, table, width=20), partition(graph, choices, table)
    assert not narrow.is_cheapest
    singles = [cost_of(graph, dict.fromkeys(choices, b), table) for b in BACKENDS]
    assert wide.cost <= narrow.cost < min(singles)


@pytest.mark.slow
def test_the_same_question_has_the_same_answer() -> None:
    numbers = random.Random(4)
    graph = random_graph(numbers, 25)
    table = random_table(numbers, graph, 4.0)
    first, *others = [partition(graph, everywhere(graph, *BACKENDS), table) for _ in range(3)]
    assert all(other == first for other in others)


def test_a_graph_without_layers_costs_nothing() -> None:
    result = partition(Graph((), (), (), ()), {}, Table({}))
    assert (result.backends, result.cost, result.is_cheapest) == ({}, 0.0, True)
