"""The canonical form of a model: what exporters write in several ways is written in one.

Notes
-----
ONNX Runtime takes all of these forms. The parser, and what checks a model, see one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, TypeAlias

import onnx

from armpy.errors import ParserError

FreeNames: TypeAlias = dict[int, tuple[onnx.GraphProto, Iterable[str]]]
"""Names that graphs read from outside, by the graphs' ids; a graph that is held keeps its id."""

MAIN_DOMAINS = ("", "ai.onnx")
"""Names of ONNX's own domain, of which the first is the canonical one."""

Body: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"


def make_canonical(model: onnx.ModelProto) -> None:
    r"""Bring a model into canonical form, in place.

    Raises
    ------
    ParserError
        If the nodes of a graph read each other's outputs in a circle.

    Notes
    -----
    - Names are text: bytes that are not UTF-8 are written as ``\xc4``.
    - ONNX's own domain is ``""``.
    - A graph has one initializer of each name, the last one; sparse initializers are the last.
    - A graph has no initializers and Constant nodes that nothing reads, and no nodes without
      inputs and outputs.
    - Nodes come after those whose outputs they read.
    - Attributes refer to those of a function inside of functions only; elsewhere they have their
      own values, which are zero where there are none.
    """
    _write_main_domain(model.opset_import)
    free_names_by_id: FreeNames = {}
    _make_graph_canonical(model.graph, free_names_by_id, is_main=True)
    for function in model.functions:
        _decode_if_needed(function, (function.name, function.domain, *function.input))
        if function.domain in MAIN_DOMAINS:
            function.domain = ""
        _write_main_domain(function.opset_import)
        _make_nodes_canonical(function, free_names_by_id, in_function=True)


def _write_main_domain(imports: Iterable[onnx.OperatorSetIdProto]) -> None:
    for opset in imports:
        _decode_if_needed(opset, (opset.domain,))
        if opset.domain in MAIN_DOMAINS:
            opset.domain = ""


def _make_graph_canonical(
    graph: onnx.GraphProto, known: FreeNames, *, is_main: bool = False, in_function: bool = False
) -> None:
    """Bring a graph, and those inside of it, into canonical form."""
    _decode_if_needed(graph, (graph.name, graph.doc_string))
    for value in (*graph.input, *graph.output):
        decode_texts(value)
    for tensor in graph.initializer:
        _decode_if_needed(tensor, (tensor.name,))
    names_read_here = _make_nodes_canonical(graph, known, in_function=in_function)
    names_read_here.update(value.name for value in graph.output)
    _remove_initializers(graph, names_read_here, is_main=is_main)


def _make_nodes_canonical(body: Body, known: FreeNames, *, in_function: bool) -> set[str]:
    """Bring the nodes of a graph or function into canonical form; the names that they read."""
    for node in body.node:
        attributes = node.attribute
        texts = (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        _decode_if_needed(node, (*texts, *(attribute.name for attribute in attributes)))
        if node.domain == MAIN_DOMAINS[1]:
            node.domain = MAIN_DOMAINS[0]
        for attribute in attributes:
            if not in_function:
                attribute.ClearField("ref_attr_name")
            for graph in graphs_of(attribute):
                _make_graph_canonical(graph, known, in_function=in_function)
    reads = [[*names_read(node, known)] for node in body.node]
    outputs = body.output if isinstance(body, onnx.FunctionProto) else [v.name for v in body.output]
    names = {*chain.from_iterable(reads), *outputs}
    needless = {
        number
        for number, node in enumerate(body.node)
        if _has_no_operands(node) or (_is_constant(node) and names.isdisjoint(node.output))
    }
    if needless:
        _keep(body, [number for number in range(len(body.node)) if number not in needless])
        reads = [of for number, of in enumerate(reads) if number not in needless]
    _sort_nodes(body, reads)
    return names


def _has_no_operands(node: onnx.NodeProto) -> bool:
    """Return whether a node computes nothing of nothing."""
    return not node.output and not node.input


def _is_constant(node: onnx.NodeProto) -> bool:
    return bool(node.op_type == "Constant" and not node.domain)


def _keep(body: Body, numbers: Sequence[int]) -> None:
    """Let a body have some of its nodes, in the order given."""
    copies = [onnx.NodeProto.FromString(body.node[n].SerializeToString()) for n in numbers]
    del body.node[:]
    body.node.extend(copies)


def _remove_initializers(graph: onnx.GraphProto, names: set[str], *, is_main: bool) -> None:
    """Remove initializers that are not read, or stand in front of others of their name.

    Parameters
    ----------
    names : set of str
        All that is read in the graph.
    is_main : bool
        Whether initializers are in the place of inputs.
    """
    for sparse in graph.sparse_initializer:
        _decode_if_needed(sparse, (sparse.values.name,))
    unread: set[str] = set()
    later: set[str] = set()
    # Of an inner graph, `structures.inner_inputs` finds out which are initializers.
    inner_inputs = set() if is_main else {value.name for value in graph.input}
    for tensors, names_of in (
        (graph.sparse_initializer, [t.values.name for t in graph.sparse_initializer]),
        (graph.initializer, [tensor.name for tensor in graph.initializer]),
    ):
        for number in reversed(range(len(names_of))):
            name = names_of[number]
            is_read = name and (name in names or name in inner_inputs)
            if name in later or not is_read:
                unread.add(name)
                del tensors[number]
            later.add(name)
    if is_main:
        for number in reversed(range(len(graph.input))):
            name = graph.input[number].name
            if name in unread and name not in names:
                del graph.input[number]


def _sort_nodes(body: Body, reads: Sequence[Sequence[str]]) -> None:
    """Put each node of a graph after those whose outputs it reads, as ONNX Runtime does.

    Notes
    -----
    ONNX wants files to be sorted, and some exporters' are not. Nodes of a sorted graph keep their
    places.
    """
    writers = {name: number for number, node in enumerate(body.node) for name in node.output}
    sources = [{writers[name] for name in of if name in writers} for of in reads]
    if all(max(of, default=-1) < number for number, of in enumerate(sources)):
        return
    try:
        order = [*TopologicalSorter(dict(enumerate(sources))).static_order()]
    except CycleError as error:
        labels = [node_label(body.node[number], number) for number in error.args[1]]
        raise ParserError(
            "the nodes of a graph read each other's outputs in a circle",
            actual=" -> ".join(reversed(labels[:_MOST_NAMED])),
            fix="Write each tensor before it is read",
        ) from error
    _keep(body, order)


_MOST_NAMED = 20


def _decode_if_needed(message: Any, texts: Iterable[object]) -> None:  # Any: a protocol buffer
    """`decode_texts` of a message, if one of some of its texts is not UTF-8."""
    if any(isinstance(text, bytes) for text in texts):
        decode_texts(message)


def decode_texts(message: Any) -> None:  # Any: a protocol buffer, as the package has no types
    """Replace bytes that are not UTF-8 in a message's texts, in place.

    Notes
    -----
    ONNX's messages may hold them, and Protocol Buffers gives such texts as bytes. Names of external
    files stay as they are, and elements of tensors are not looked at.
    """
    if isinstance(message, onnx.TensorProto):
        if isinstance(message.name, bytes):
            message.name = _decoded(message.name)
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            if not field.is_repeated:
                if isinstance(value, bytes):
                    setattr(message, field.name, _decoded(value))
            elif any(isinstance(text, bytes) for text in value):
                texts = [_decoded(text) for text in value]
                del value[:]
                value.extend(texts)
        elif field.type == field.TYPE_MESSAGE:
            for part in value if field.is_repeated else (value,):
                decode_texts(part)


def _decoded(text: str | bytes) -> str:
    r"""A text in which bytes that are not UTF-8 are written as ``\xc4``."""
    return text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")


def node_label(node: onnx.NodeProto, number: int) -> str:
    """Return the name of a node for messages and layers, made up where the file gives none."""
    return node.name or f"{node.op_type}_{number}"


def initial_names(graph: onnx.GraphProto) -> set[str]:
    """Names of a graph's initializers, dense and sparse."""
    names = {tensor.name for tensor in graph.initializer}
    return names | {tensor.values.name for tensor in graph.sparse_initializer}


def graphs_of(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def names_read(node: onnx.NodeProto, known: FreeNames | None = None) -> Iterator[str]:
    """Names that a node, or a graph inside of it, reads."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in graphs_of(attribute):
            yield from free_names(graph, known)


def free_names(graph: onnx.GraphProto, known: FreeNames | None = None) -> Iterable[str]:
    """Names that a graph, or one inside of it, reads and does not write.

    Parameters
    ----------
    known : dict, optional
        Earlier results for graphs, which are used and added to: graphs lie in each
        other, and each would be looked through for every graph around it.
    """
    if known is not None and id(graph) in known:
        return known[id(graph)][1]
    own = {value.name for value in graph.input} | initial_names(graph)
    names: dict[str, None] = {}
    for node in graph.node:
        names.update((name, None) for name in names_read(node, known) if name not in own)
        own.update(node.output)
    names.update((value.name, None) for value in graph.output if value.name not in own)
    if known is not None:
        known[id(graph)] = graph, names
    return names
