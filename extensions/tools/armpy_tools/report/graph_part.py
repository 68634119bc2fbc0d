"""The graph of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from armpy.core.units import bytes_text, count_text, time_text, type_name
from armpy.inspect import LayerStatus, ModelFacts, TensorFacts
from armpy.profiling import TOGETHER
from armpy_tools.pages import (
    GraphEdge,
    GraphNode,
    GraphView,
    NodeColours,
    lay_out,
    quantization_text,
    shape_text,
)
from armpy_tools.report.layers import LayerRow, layers_as_run

WIDTH, HEIGHT = 260.0, 44.0
EDGE_OF_MODEL = "input or output"


def graph_part(facts: ModelFacts, rows: Sequence[LayerRow]) -> GraphView:
    """A model's layers as they ran, its inputs and outputs; fused layers are one node.

    Parameters
    ----------
    rows : sequence of LayerRow
        One for each layer of its file.
    """
    groups = [[rows[number] for number in group] for group in layers_as_run(rows)]
    first = len(facts.inputs)
    node_of = {
        row.facts.index: first + number for number, group in enumerate(groups) for row in group
    }
    first_output = first + len(groups)
    edges = [
        (number, node_of[reader])
        for number, place in enumerate(facts.inputs)
        for reader in facts.tensors[place].consumers
    ]
    edges += [
        (node_of[producer], node)
        for node, group in enumerate(groups, first)
        for row in group
        for producer in row.inputs
        if node_of[producer] != node
    ]
    edges = list(dict.fromkeys([*edges, *_edges_to_outputs(facts, node_of, first_output)]))
    count = first_output + len(facts.outputs)
    layout = lay_out([(WIDTH, HEIGHT)] * count, edges)
    labels = [
        *_ends(facts, facts.inputs, "input"),
        *(_label(facts, group) for group in groups),
        *_ends(facts, facts.outputs, "output"),
    ]
    nodes = [
        GraphNode(title, subtitle, x, y, WIDTH, HEIGHT, node_facts)
        for (title, subtitle, node_facts), (x, y) in zip(labels, layout.centres, strict=True)
    ]
    ways = [
        GraphEdge(source, target, _points(nodes[source], nodes[target], bends))
        for (source, target), bends in zip(edges, layout.ways, strict=True)
    ]
    fused = f", drawn as {len(groups)} as some ran as one" if len(groups) < len(rows) else ""
    caption = f"The model's graph: {len(rows)} layers{fused}, inputs at the top"
    return GraphView(caption, nodes, ways, _colourings(groups, first, len(facts.outputs)))


_Label: TypeAlias = tuple[str, str, list[tuple[str, str]]]
"""Title, subtitle and facts of a node."""


def _ends(facts: ModelFacts, places: Sequence[int], kind: str) -> list[_Label]:
    """Inputs or outputs."""
    tensors = [facts.tensors[place] for place in places]
    return [
        (
            tensor.name,
            f"{kind} {shape_text(tensor.shape)}",
            [
                ("name", tensor.name),
                ("shape", shape_text(tensor.shape)),
                *_type_facts(tensor),
            ],
        )
        for tensor in tensors
    ]


def _type_facts(tensor: TensorFacts) -> list[tuple[str, str]]:
    """The type of a tensor, and its quantisation if it has one."""
    quantization = quantization_text(tensor.scales, tensor.zero_points, tensor.axis)
    return [
        ("type", type_name(tensor.type)),
        *([("quantisation", quantization)] if quantization else []),
    ]


def _edges_to_outputs(
    facts: ModelFacts, node_of: Mapping[int, int], first_output: int
) -> list[tuple[int, int]]:
    """Edges from the layers that write outputs, or from inputs that are outputs."""
    edges = []
    for number, place in enumerate(facts.outputs):
        producer = facts.tensors[place].producer
        if producer is not None:
            edges.append((node_of[producer], first_output + number))
        elif place in facts.inputs:
            edges.append((facts.inputs.index(place), first_output + number))
    return edges


def _points(
    source: GraphNode, target: GraphNode, bends: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The corners of an edge; none if a curve from one node to the other does."""
    if not bends:
        return []
    begin = (source.x, source.y + source.height / 2)
    return [begin, *bends, (target.x, target.y - target.height / 2)]


def _label(facts: ModelFacts, group: Sequence[LayerRow]) -> _Label:
    """A node of layers that ran as one; the one with most operations names it."""
    main = max(group, key=lambda row: row.facts.operations)
    kinds = TOGETHER.join(row.facts.operator for row in group)
    return main.short, f"{kinds} {group[-1].shape}", _facts(facts, group)


def _facts(facts: ModelFacts, group: Sequence[LayerRow]) -> list[tuple[str, str]]:
    """Facts of a node."""
    layers, last = [row.facts for row in group], group[-1].facts
    node_facts = [("name", layer.name) for layer in layers]
    node_facts += [("operator", TOGETHER.join(layer.operator for layer in layers))]
    node_facts.append(("shape", group[-1].shape))
    node_facts += _type_facts(facts.tensors[last.outputs[0]]) if last.outputs else []
    node_facts.append(("backend", _where(group)))
    if last.inside:
        node_facts.append(("inside", last.inside))
    node_facts += [(f"refused by {r.backend}", r.text) for layer in layers for r in layer.refusals]
    if (timed := _timed(group)) is not None and timed.time_us is not None:
        node_facts.append(("time", time_text(timed.time_us)))
        if timed.quartiles_us is not None:
            ends = map(time_text, timed.quartiles_us[::2])
            node_facts.append(("half of the runs", " to ".join(ends)))
    if macs := sum(layer.macs for layer in layers):
        node_facts.append(("multiply-adds", count_text(macs)))
    node_facts.append(("operations", count_text(sum(layer.operations for layer in layers))))
    node_facts.append(("reads and writes", bytes_text(sum(layer.bytes_moved for layer in layers))))
    if parameters := sum(layer.parameters for layer in layers):
        size = bytes_text(sum(layer.parameter_bytes for layer in layers))
        node_facts.append(("parameters", f"{count_text(parameters)}, {size}"))
    for name, error in (("error alone", _error(group)), ("error up to here", _total_error(group))):
        node_facts += [(name, f"{error:.3g}")] if error is not None else []
    names = {layer.name for layer in layers}
    others = [name for layer in layers for name in layer.layer_names if name not in names]
    node_facts += [("runs as", ", ".join(dict.fromkeys(others)))] if others else []
    return node_facts


def _where(group: Sequence[LayerRow]) -> str:
    """The backend of layers that ran as one."""
    ran = [row for row in group if row.facts.status is LayerStatus.RUNS]
    return (ran or group)[0].where


def _timed(group: Sequence[LayerRow]) -> LayerRow | None:
    """One of the layers that ran as one and were measured: each of them has the time of all."""
    return next((row for row in group if row.time_us is not None), None)


def _error(group: Sequence[LayerRow]) -> float | None:
    """The largest error alone."""
    return max((row.error for row in group if row.error is not None), default=None)


def _total_error(group: Sequence[LayerRow]) -> float | None:
    """The error after the last layer."""
    return next((r.total_error for r in reversed(group) if r.total_error is not None), None)


def _colourings(
    groups: Sequence[Sequence[LayerRow]], num_before: int, num_after: int
) -> list[NodeColours]:
    """Return the colourings of the graph, the time first."""

    def classes(name: str, of_groups: Sequence[str]) -> NodeColours:
        before, after = [EDGE_OF_MODEL] * num_before, [EDGE_OF_MODEL] * num_after
        return NodeColours(name, [*before, *of_groups, *after])

    def amounts(
        name: str, of_groups: Sequence[float | None], text: Callable[[float], str]
    ) -> NodeColours:
        texts = ["" if amount is None else text(amount) for amount in of_groups]
        return NodeColours(
            name,
            amounts=[*[None] * num_before, *of_groups, *[None] * num_after],
            texts=[*[""] * num_before, *texts, *[""] * num_after],
        )

    colourings = []
    times = [None if (timed := _timed(group)) is None else timed.time_us for group in groups]
    if any(time is not None for time in times):
        colourings.append(amounts("time", times, time_text))
    kinds = [TOGETHER.join(row.facts.operator for row in group) for group in groups]
    colourings += [
        classes("backend", [_where(group) for group in groups]),
        classes("operator", kinds),
        classes("precision", [group[-1].type or "not known" for group in groups]),
    ]
    weights = [float(sum(row.facts.parameter_bytes for row in group)) for group in groups]
    colourings.append(amounts("weights", weights, bytes_text))
    for name, errors in (
        ("error alone", [_error(group) for group in groups]),
        ("error up to here", [_total_error(group) for group in groups]),
    ):
        if any(errors):
            finite = [None if e is None or not math.isfinite(e) else e for e in errors]
            colourings.append(amounts(name, finite, "{:.3g}".format))
    return colourings
