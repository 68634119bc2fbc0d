"""Draws a graph as text for Graphviz."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.graph.graph import Graph, Layer
from armpy.tensor import format_shape


def to_dot(graph: Graph, backends: Mapping[int, str] | None = None) -> str:
    """The graph in Graphviz's ``.dot`` language.

    Parameters
    ----------
    backends : mapping of int to str, optional
        Backend id by layer id, shown in the node.

    Returns
    -------
    str
        Nodes are layers, graph inputs and outputs; edges carry shapes. Constants are not
        drawn.
    """
    lines = [
        f"digraph {_quoted('armpy')} {{",
        '    node [shape="record"];',
        '    edge [fontsize=8 fontcolor="blue" fontname="arial-bold"];',
    ]
    nodes: dict[object, str] = {}
    for index, source in enumerate(graph.sources):
        nodes[source] = f"in{index}"
        lines.append(f"    in{index} [label={_quoted(f'{{Input|{_field(source.name)}}}')}];")
    for layer in graph.layers:
        nodes.update(dict.fromkeys(layer.outputs, f"n{layer.id}"))
        backend = (backends or {}).get(layer.id)
        lines.append(f"    n{layer.id} [label={_quoted(_label(layer, backend))}];")
    for layer in graph.layers:
        for value in layer.inputs:
            if value in nodes and value is not None:
                lines.append(_edge(nodes[value], f"n{layer.id}", format_shape(value.info.shape)))
    for index, (name, result) in enumerate(zip(graph.output_names, graph.outputs, strict=True)):
        lines.append(f"    out{index} [label={_quoted(f'{{Output|{_field(name)}}}')}];")
        if result in nodes:
            lines.append(_edge(nodes[result], f"out{index}", format_shape(result.info.shape)))
    return "\n".join([*lines, "}", ""])


def _label(layer: Layer, backend: str | None) -> str:
    """Record label of one layer: operation, attributes, id, name, backend."""
    rows = [f"{key} : {_field(str(v))}" for key, v in layer.operation.attributes().items()]
    rows += [f"Guid : {layer.id}", f"LayerName : {_field(layer.name)}"]
    if backend is not None:
        rows.append(f"BackendID : {_field(backend)}")
    return "{" + _field(layer.operation.name) + "|" + "".join(row + "\\l" for row in rows) + "}"


def _edge(source: str, target: str, label: str) -> str:
    return f"    {source} -> {target} [label={_quoted(label)}];"


def _field(text: str) -> str:
    """Text with the characters escaped that mean something in a record label."""
    return "".join("\\" + c if c in '{}|<>\\"' else c for c in text)


def _quoted(text: str) -> str:
    """Text between double quotes; its quotes must be escaped already."""
    return f'"{text}"'
