from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from armpy.graph import Graph, Layer, SubgraphView, select_subgraphs
from armpy_testing.models.networks import graph_of_edges

Case = tuple[list[list[int]], list[str | None]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A random graph, by its edges, and a backend or none for each layer."""
    count = draw(st.integers(1, 14))
    parents = [
        draw(st.lists(st.integers(0, i - 1), max_size=2, unique=True)) if i else []
        for i in range(count)
    ]
    keys = draw(st.lists(st.sampled_from(["A", "B", "C", None]), min_size=count, max_size=count))
    return parents, keys


def select(graph: Graph, keys: Sequence[str | None]) -> list[SubgraphView]:
    """Subgraphs for a key per layer number."""
    return select_subgraphs(graph, lambda layer: keys[layer.id])


def names(views: Sequence[SubgraphView]) -> list[str]:
    """Layer names of each view."""
    return [" ".join(layer.name for layer in view.layers) for view in views]


def units_of(graph: Graph, views: Sequence[SubgraphView]) -> dict[Layer, int]:
    """Number of the view of each layer; a number of its own for one in no view."""
    units = {layer: number for number, view in enumerate(views) for layer in view.layers}
    for layer in graph.layers:
        units.setdefault(layer, len(views) + layer.id)
    return units


def needs_of(graph: Graph, units: dict[Layer, int]) -> dict[int, set[int]]:
    """The units that each unit reads from."""
    needs: dict[int, set[int]] = {unit: set() for unit in units.values()}
    for layer in graph.layers:
        for value in layer.inputs:
            if value is not None and value in graph.producers:
                needs[units[layer]].add(units[graph.producers[value]])
    return {unit: others - {unit} for unit, others in needs.items()}


def reaches(needs: dict[int, set[int]], start: int, goal: int) -> bool:
    """Whether a unit needs another, directly or not."""
    return start == goal or any(reaches(needs, other, goal) for other in needs[start])


@given(cases())
def test_views_hold_each_layer_that_has_a_key_once_and_only_layers_of_one_key(case: Case) -> None:
    parents, keys = case
    graph = graph_of_edges(parents)
    views = select(graph, keys)
    held = sorted(layer.id for view in views for layer in view.layers)
    assert held == [layer.id for layer in graph.layers if keys[layer.id] is not None]
    assert all(len({keys[layer.id] for layer in view.layers}) == 1 for view in views)


@given(cases())
def test_every_view_is_convex(case: Case) -> None:
    graph = graph_of_edges(case[0])
    assert all(view.is_convex_in(graph) for view in select(graph, case[1]))


@given(cases())
def test_the_graph_of_views_has_no_cycle(case: Case) -> None:
    graph = graph_of_edges(case[0])
    needs = needs_of(graph, units_of(graph, select(graph, case[1])))
    assert len(list(TopologicalSorter(needs).static_order())) == len(needs)  # raises at a cycle


@given(cases())
def test_no_two_joined_views_of_one_key_could_be_one(case: Case) -> None:
    parents, keys = case
    graph = graph_of_edges(parents)
    views = select(graph, keys)
    needs = needs_of(graph, units_of(graph, views))
    for reader, view in enumerate(views):
        for source in needs[reader]:
            if source >= len(views) or keys[views[source].layers[0].id] != keys[view.layers[0].id]:
                continue
            others = needs[reader] - {source}
            assert any(reaches(needs, other, source) for other in others), names(views)


@given(cases())
def test_the_answer_is_the_same_every_time_and_in_the_layers_order(case: Case) -> None:
    parents, keys = case
    first = names(select(graph_of_edges(parents), keys))
    assert first == names(select(graph_of_edges(parents), keys))
    starts = [int(text.split()[0][1:]) for text in first]
    assert starts == sorted(starts)


def test_layers_without_a_key_are_left_out_and_still_separate() -> None:
    graph = graph_of_edges([[], [0], [1]])
    assert names(select(graph, ["A", None, "A"])) == ["n0", "n2"]
