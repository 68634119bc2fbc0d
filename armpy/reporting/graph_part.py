"""The graph of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.graph import Graph
from armpy.pages import Colouring, GraphEdge, GraphNode, GraphView, lay_out
from armpy.reporting.layers import LayerRow, graph_of
from armpy.reporting.units import bytes_text, count_text, time_text
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.runtime import Model

WIDTH, HEIGHT = 230.0, 44.0
NARROW = 150.0
EDGE_OF_MODEL = "input or output"


def graph_part(model: Model, rows: Sequence[LayerRow]) -> GraphView:
    """The model's layers, inputs and outputs.

    Parameters
    ----------
    model : Model
    rows : sequence of LayerRow
        As `layer_rows` gives them.
    """
    graph = graph_of(model)
    ends = _Ends(graph, model)
    first = len(ends.inputs)
    behind = first + len(rows)
    edges = [(*edge, "") for edge in ends.read_by(graph, first)]
    edges += [(first + n, first + m, "") for m, row in enumerate(rows) for n in row.inputs]
    edges += [(node, behind + n, "") for n, node in ends.written_by(graph, first)]
    sizes = [(NARROW, HEIGHT)] * first + [(WIDTH, HEIGHT)] * len(rows)
    sizes += [(NARROW, HEIGHT)] * len(ends.outputs)
    pairs = [(source, target) for source, target, _ in edges]
    layout = lay_out(sizes, pairs)
    labels = [
        *((name, f"input {shape}", (("shape", shape),)) for name, shape in ends.inputs),
        *((row.short, f"{row.operation} {row.shape}", _facts(row)) for row in rows),
        *((name, f"output {shape}", (("shape", shape),)) for name, shape in ends.outputs),
    ]
    nodes = [
        GraphNode(title, subtitle, x, y, *size, facts)
        for (title, subtitle, facts), (x, y), size in zip(
            labels, layout.centres, sizes, strict=True
        )
    ]
    ways = [
        GraphEdge(source, target, _points(nodes[source], nodes[target], bends))
        for (source, target), bends in zip(pairs, layout.ways, strict=True)
    ]
    return GraphView(
        f"The model's graph: {len(rows)} layers, inputs at the top",
        nodes,
        ways,
        _colourings(rows, len(ends.inputs), len(ends.outputs)),
    )


class _Ends:
    """Inputs and outputs of a model: names and shapes."""

    def __init__(self, graph: Graph, model: Model) -> None:
        names = [spec.name for spec in model.inputs]
        infos = [value.info for value in graph.inputs]
        self.inputs = [
            (name, format_shape(info.shape)) for name, info in zip(names, infos, strict=True)
        ]
        self.outputs = [
            (name, format_shape(value.info.shape))
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
        ]

    def read_by(self, graph: Graph, first: int) -> list[tuple[int, int]]:
        """Edges from inputs to the layers that read them."""
        numbers = {value: n for n, value in enumerate(graph.inputs)}
        return [
            (numbers[value], first + n)
            for n, layer in enumerate(graph.layers)
            for value in layer.inputs
            if value is not None and value in numbers
        ]

    def written_by(self, graph: Graph, first: int) -> list[tuple[int, int]]:
        """Number of each output that a layer writes, and the node of that layer."""
        writers = {
            value: first + n for n, layer in enumerate(graph.layers) for value in layer.outputs
        }
        return [(n, writers[value]) for n, value in enumerate(graph.outputs) if value in writers]


def _points(
    source: GraphNode, target: GraphNode, bends: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The corners of an edge; none if a curve from one node to the other does."""
    if not bends:
        return []
    begin = (source.x, source.y + source.height / 2)
    return [begin, *bends, (target.x, target.y - target.height / 2)]


def _facts(row: LayerRow) -> list[tuple[str, str]]:
    """What is told of a layer."""
    facts = [("name", row.name)] if row.name != row.short else []
    facts += [("operation", row.operation), ("shape", row.shape), ("precision", row.precision)]
    facts += [("backend", row.backend or "not known")]
    facts += [(f"refused by {backend}", text) for backend, text in row.refusals]
    if row.time_us is not None:
        company = f", together with {', '.join(row.company)}" if row.company else ""
        facts.append(("time", time_text(row.time_us) + company))
    facts += [
        ("operations", count_text(row.operations)),
        ("reads and writes", bytes_text(row.bytes_moved)),
    ]
    if row.weight_bytes:
        facts.append(("weights", bytes_text(row.weight_bytes)))
    if row.error is not None:
        facts.append(("error alone", f"{row.error:.3g}"))
    if row.total_error is not None:
        facts.append(("error up to here", f"{row.total_error:.3g}"))
    facts += [("made of", ", ".join(row.origins))] if row.origins else []
    return facts


def _colourings(rows: Sequence[LayerRow], num_before: int, num_behind: int) -> list[Colouring]:
    """By what the graph can be coloured."""

    def classes(name: str, of_rows: Sequence[str]) -> Colouring:
        before, behind = [EDGE_OF_MODEL] * num_before, [EDGE_OF_MODEL] * num_behind
        return Colouring(name, [*before, *of_rows, *behind])

    def amounts(name: str, of_rows: Sequence[float | None], texts: Sequence[str]) -> Colouring:
        return Colouring(
            name,
            amounts=[*[None] * num_before, *of_rows, *[None] * num_behind],
            texts=[*[""] * num_before, *texts, *[""] * num_behind],
        )

    found = [
        classes("backend", [row.backend or "not known" for row in rows]),
        classes("operation", [row.operation for row in rows]),
        classes("precision", [row.precision for row in rows]),
    ]
    times = [row.time_us for row in rows]
    if any(time is not None for time in times):
        texts = ["" if time is None else time_text(time) for time in times]
        found.insert(1, amounts("time", times, texts))
    weights = [float(row.weight_bytes) for row in rows]
    found.append(amounts("weights", weights, [bytes_text(weight) for weight in weights]))
    for name, errors in (
        ("error alone", [row.error for row in rows]),
        ("error up to here", [row.total_error for row in rows]),
    ):
        if any(error for error in errors):
            texts = ["" if error is None else f"{error:.3g}" for error in errors]
            finite = [None if e is None or not math.isfinite(e) else e for e in errors]
            found.append(amounts(name, finite, texts))
    return found
