"""Drawings of optimised networks in Graphviz's language, as Arm NN makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armpy.graph import Graph, Value
from armpy_compat.backend_names import arm_nn_id


def dot_lines(graph: Graph, backends: Mapping[int, str]) -> Iterator[str]:
    """Lines of the file: layers are nodes, and edges carry shapes.

    Parameters
    ----------
    backends : mapping of int to str
        Backends by layer id.
    """
    yield "digraph Optimized {"
    yield '    node [shape="record"];'
    yield '    edge [fontsize=8 fontcolor="blue" fontname="arial-bold"];'
    nodes: dict[Value, int] = {}
    for value in graph.inputs:
        nodes[value] = len(nodes)
        yield _node(nodes[value], "Input", value.name, {})
    number = len(nodes)
    for layer in graph.layers:
        nodes.update(dict.fromkeys(layer.outputs, number))
        rows = {key: str(value) for key, value in layer.operation.attributes().items()}
        if layer.id in backends:
            rows["BackendID"] = arm_nn_id(backends[layer.id])
        yield _node(number, layer.operation.name, layer.name, rows)
        for source in layer.inputs:
            if source in nodes and source is not None:
                yield _edge(nodes[source], number, source)
        number += 1
    for name, value in zip(graph.output_names, graph.outputs, strict=True):
        yield _node(number, "Output", name, {})
        if value in nodes:
            yield _edge(nodes[value], number, value)
        number += 1
    yield "}"


def _node(number: int, kind: str, name: str, rows: dict[str, str]) -> str:
    titled = {**rows, "LayerName": name, "LayerType": kind}
    text = "".join(f"{key} : {_escaped(value)}\\l" for key, value in titled.items())
    return f'    {number} [label="{{{kind}|{text}}}"];'


def _edge(source: int, target: int, value: Value) -> str:
    sizes = ",".join("?" if size is None else str(size) for size in value.info.shape or ())
    return f"    {source} -> {target} [label=< [{sizes}] >];"


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in '{}|<>\\"' else c for c in text)
