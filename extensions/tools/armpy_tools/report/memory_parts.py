"""Memory of a model: parts of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.core.units import bytes_text
from armpy.graph import Graph, Value
from armpy_tools.pages import Bar, Bars, Facts, Lines, Part, Series, Stack, Text
from armpy_tools.report.layers import LayerRow, LayerRows, graph_of

if TYPE_CHECKING:
    from armpy.compiler.memory.plan import MemoryPlan
    from armpy.model import Model


def memory_parts(model: Model, known: LayerRows) -> list[Part]:
    """Weights, working memory, and how it fills while the model runs."""
    graph, placement = graph_of(model), model.placement
    arenas = {} if placement is None else placement.arena_bytes
    kinds = memory_kinds(model)
    bars = [Bar(name, float(size), bytes_text(size)) for name, size in kinds]
    parts: list[Part] = [
        Facts([(name, bytes_text(size)) for name, size in kinds]),
        Stack("Memory of one model and one run", bars),
        Bars("Weights by kind of layer", _by_kind(known.rows), "kind", "weights"),
        Bars("Weights by layer", _by_layer(known.rows), "layer", "weights", shown=15),
    ]
    if graph.is_fully_shaped:
        parts.append(_needed_over_time(graph, sum(arenas.values()), known))
    else:
        parts.append(Text("Shapes depend on inputs: memory over time is not known.", "note"))
    optimized = model.runtime.get_network(model.network_id).optimized
    if optimized is not None and optimized.memory.tensors:
        parts.append(_arenas_over_time(optimized.memory, len(optimized.graph.layers)))
    return parts


def memory_kinds(model: Model) -> list[tuple[str, int]]:
    """Bytes of each kind of memory that one model and one run take."""
    graph, placement = graph_of(model), model.placement
    arenas = {} if placement is None else placement.arena_bytes
    kinds = [
        ("weights and other constants", weight_bytes(graph)),
        *((f"working memory of {backend}", size) for backend, size in arenas.items()),
        ("kept between runs", sum(variable.initial.nbytes for variable in graph.variables)),
        ("inputs", sum(_size(value) for value in graph.inputs)),
        ("outputs", sum(_size(value) for value in graph.outputs)),
    ]
    return [(kind, size) for kind, size in kinds if size]


def weight_bytes(graph: Graph) -> int:
    """Bytes of all constants, each counted once."""
    arrays = {id(v.data): v.data.nbytes for v in graph.values() if v.data is not None}
    return sum(arrays.values())


def _size(value: Value) -> int:
    """Bytes of a tensor; 0 where they are not known."""
    return value.info.size_bytes if value.info.is_fully_shaped else 0


def _by_kind(rows: Sequence[LayerRow]) -> list[Bar]:
    """Weights of all layers of a kind."""
    kinds: dict[str, int] = {}
    for row in rows:
        kind = row.facts.operator
        kinds[kind] = kinds.get(kind, 0) + row.facts.parameter_bytes
    ordered = sorted(kinds.items(), key=lambda item: -item[1])
    return [Bar(name, float(size), bytes_text(size)) for name, size in ordered if size]


def _by_layer(rows: Sequence[LayerRow]) -> list[Bar]:
    """Weights of each layer, the largest first."""
    ordered = sorted(rows, key=lambda row: -row.facts.parameter_bytes)
    return [
        Bar(row.title, float(row.facts.parameter_bytes), bytes_text(row.facts.parameter_bytes))
        for row in ordered
        if row.facts.parameter_bytes
    ]


def needed_bytes(graph: Graph) -> list[int]:
    """Bytes of the tensors that are needed while each layer runs.

    Notes
    -----
    What layers write counts from then to its last reader; inputs do until they were read, outputs
    to the end. Constants do not count. Without layers, as before the part of a network that waits
    for elements, there is nothing.
    """
    count = len(graph.layers)
    if not count:
        return []
    first = {value: n for n, layer in enumerate(graph.layers) for value in layer.outputs}
    last = {v: n for n, layer in enumerate(graph.layers) for v in layer.inputs if v is not None}
    last.update(dict.fromkeys(graph.results, count - 1))
    changes = [0] * (count + 1)
    for value in {*first, *graph.sources}:
        begin = first.get(value, 0)
        changes[begin] += value.info.size_bytes
        changes[last.get(value, begin) + 1] -= value.info.size_bytes
    totals, total = [], 0
    for change in changes[:count]:
        total += change
        totals.append(total)
    return totals


def _needed_over_time(graph: Graph, arena: int, known: LayerRows) -> Lines:
    """Tensors that are needed, layer by layer."""
    sizes = needed_bytes(graph)
    xs = [float(n) for n in range(len(sizes))]
    names = [" ".join(known.name(layer.name, layer.operation.name)) for layer in graph.layers]
    series = [Series("needed", xs, [size / 1024 for size in sizes], names)]
    limits = [(f"working memory, {bytes_text(arena)}", arena / 1024)] if arena else []
    caption = "Tensors that are needed while each layer runs, inputs and outputs included"
    return Lines(caption, series, "layer", "KiB", is_step=True, limits=limits)


def _arenas_over_time(plan: MemoryPlan, num_steps: int) -> Lines:
    """Return how the arenas that armpy has planned fill, step by step."""
    series = []
    for arena, size in plan.arenas.items():
        changes = [0] * (num_steps + 1)
        for value, tensor in plan.tensors.items():
            if tensor.arena == arena:
                changes[tensor.lifetime[0]] += value.info.size_bytes
                changes[tensor.lifetime[1] + 1] -= value.info.size_bytes
        used, total = [], 0
        for change in changes[:num_steps]:
            total += change
            used.append(total / 1024)
        name = f"{arena.backend_id}, {bytes_text(size)}"
        series.append(Series(name, [float(n) for n in range(num_steps)], used))
    limits = [(f"size for {arena.backend_id}", size / 1024) for arena, size in plan.arenas.items()]
    caption = "Contents of the planned arenas, step by step"
    return Lines(caption, series, "step", "KiB", is_step=True, limits=limits)
