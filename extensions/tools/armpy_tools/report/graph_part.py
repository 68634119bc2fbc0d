"""The graph of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.core.units import bytes_text, count_text, time_text
from armpy.inspect import LayerStatus, ModelFacts
from armpy.tensor import format_shape
from armpy_tools.pages import GraphEdge, GraphNode, GraphView, NodeColours, lay_out
from armpy_tools.report.layers import LayerRow

WIDTH, HEIGHT = 230.0, 44.0
EDGE_OF_MODEL = "input or output"


def graph_part(facts: ModelFacts, rows: Sequence[LayerRow]) -> GraphView:
    """The layers of a model's file, its inputs and outputs.

    Parameters
    ----------
    rows : sequence of LayerRow
        One for each of its layers.
    """
    first = len(facts.inputs)
    behind = first + len(rows)
    edges = _edges_from_inputs(facts, first)
    edges += [(first + n, first + m) for m, row in enumerate(rows) for n in row.inputs]
    edges += _edges_to_outputs(facts, first, behind)
    count = behind + len(facts.outputs)
    layout = lay_out([(WIDTH, HEIGHT)] * count, edges)
    labels = [
        *_ends(facts, facts.inputs, "input"),
        *((row.short, f"{row.facts.operator} {row.shape}", _facts(row)) for row in rows),
        *_ends(facts, facts.outputs, "output"),
    ]
    nodes = [
        GraphNode(title, subtitle, x, y, WIDTH, HEIGHT, told)
        for (title, subtitle, told), (x, y) in zip(labels, layout.centres, strict=True)
    ]
    ways = [
        GraphEdge(source, target, _points(nodes[source], nodes[target], bends))
        for (source, target), bends in zip(edges, layout.ways, strict=True)
    ]
    caption = f"The model's graph: {len(rows)} layers, inputs at the top"
    return GraphView(caption, nodes, ways, _colourings(rows, first, len(facts.outputs)))


def _ends(
    facts: ModelFacts, places: Sequence[int], kind: str
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Inputs or outputs."""
    tensors = [facts.tensors[place] for place in places]
    return [
        (
            tensor.name,
            f"{kind} {format_shape(tensor.shape)}",
            [("name", tensor.name), ("shape", format_shape(tensor.shape)), ("type", tensor.type)],
        )
        for tensor in tensors
    ]


def _edges_from_inputs(facts: ModelFacts, first: int) -> list[tuple[int, int]]:
    """Edges to the layers that read inputs."""
    return [
        (number, first + reader)
        for number, place in enumerate(facts.inputs)
        for reader in facts.tensors[place].consumers
    ]


def _edges_to_outputs(facts: ModelFacts, first: int, behind: int) -> list[tuple[int, int]]:
    """Edges from the layers that write outputs, or from inputs that are outputs."""
    edges = []
    for number, place in enumerate(facts.outputs):
        producer = facts.tensors[place].producer
        if producer is not None:
            edges.append((first + producer, behind + number))
        elif place in facts.inputs:
            edges.append((facts.inputs.index(place), behind + number))
    return edges


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
    layer = row.facts
    told = [("name", layer.name), ("operator", layer.operator), ("shape", row.shape)]
    told += [("type", layer.type), ("backend", row.where)]
    if layer.inside:
        told.append(("inside", layer.inside))
    if layer.status is LayerStatus.FUSED:
        told.append(("fused into", layer.into))
    told += [(f"refused by {refusal.backend}", refusal.reason) for refusal in layer.refusals]
    if row.time_us is not None:
        company = f", together with {', '.join(row.company)}" if row.company else ""
        told.append(("time", time_text(row.time_us) + company))
    told += [("multiplications added up", count_text(layer.macs))] if layer.macs else []
    told.append(("operations", count_text(layer.operations)))
    told.append(("reads and writes", bytes_text(layer.bytes_moved)))
    if layer.parameters:
        size = bytes_text(layer.parameter_bytes)
        told.append(("parameters", f"{count_text(layer.parameters)}, {size}"))
    told += [("error alone", f"{row.error:.3g}")] if row.error is not None else []
    told += [("error up to here", f"{row.total_error:.3g}")] if row.total_error is not None else []
    others = [name for name in layer.layer_names if name != layer.name]
    told += [("runs as", ", ".join(others))] if others else []
    return told


def _colourings(rows: Sequence[LayerRow], num_before: int, num_behind: int) -> list[NodeColours]:
    """By what the graph can be coloured."""

    def classes(name: str, of_rows: Sequence[str]) -> NodeColours:
        before, behind = [EDGE_OF_MODEL] * num_before, [EDGE_OF_MODEL] * num_behind
        return NodeColours(name, [*before, *of_rows, *behind])

    def amounts(name: str, of_rows: Sequence[float | None], texts: Sequence[str]) -> NodeColours:
        return NodeColours(
            name,
            amounts=[*[None] * num_before, *of_rows, *[None] * num_behind],
            texts=[*[""] * num_before, *texts, *[""] * num_behind],
        )

    found = [classes("backend", [row.where for row in rows])]
    times = [row.time_us for row in rows]
    if any(time is not None for time in times):
        texts = ["" if time is None else time_text(time) for time in times]
        found.append(amounts("time", times, texts))
    found.append(classes("operator", [row.facts.operator for row in rows]))
    found.append(classes("precision", [row.facts.type or "not known" for row in rows]))
    weights = [float(row.facts.parameter_bytes) for row in rows]
    found.append(amounts("weights", weights, [bytes_text(weight) for weight in weights]))
    for name, errors in (
        ("error alone", [row.error for row in rows]),
        ("error up to here", [row.total_error for row in rows]),
    ):
        if any(errors):
            texts = ["" if error is None else f"{error:.3g}" for error in errors]
            finite = [None if e is None or not math.isfinite(e) else e for e in errors]
            found.append(amounts(name, finite, texts))
    return found
