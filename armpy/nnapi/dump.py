"""Draws models in Graphviz' language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from armpy.nnapi.codes import OPERAND_TRAITS, OperandCode, operation_name
from armpy.nnapi.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)

_KINDS: Mapping[Lifetime, str] = MappingProxyType(
    {
        Lifetime.CONSTANT_COPY: "COPY",
        Lifetime.CONSTANT_REFERENCE: "REF",
        Lifetime.NO_VALUE: "NO",
        Lifetime.SUBGRAPH: "SUBGRAPH",
    }
)
"""What is written of operands that no execution gives or writes."""


def graph_dump(description: ModelDescription, name: str = "model") -> str:
    """Draw a model.

    Parameters
    ----------
    description : ModelDescription
    name : str
        In the first line, a comment.

    Returns
    -------
    str
        DOT. Operands are ovals ``d<index>``, the model's inputs and outputs black; operations
        are boxes ``n<index>``. Referenced models are clusters of their own, whose names begin
        with ``m<number>_``.

    References
    ----------
    NNAPI ``graphDump``.
    """
    title = " ".join(name.split())
    lines = [f"// {title}", "digraph {", *_graph(description.main, "", "    ")]
    for number, graph in enumerate(description.referenced):
        lines += [f"    subgraph cluster_{number} {{", f'        label="referenced {number}"']
        lines += [*_graph(graph, f"m{number}_", "        "), "    }"]
    return "\n".join([*lines, "}", ""])


def _graph(graph: Subgraph, prefix: str, indent: str) -> Iterator[str]:
    """The lines of one graph."""
    edges = {index: f"input[{k}]" for k, index in enumerate(graph.inputs)}
    edges |= {index: f"output[{k}]" for k, index in enumerate(graph.outputs)}
    for index, operand in enumerate(graph.operands):
        look = "style=filled fillcolor=black fontcolor=white " if index in edges else ""
        label = _operand_label(operand, edges.get(index, str(index)))
        yield f'{indent}{prefix}d{index} [{look}label="{label}"]'
    for index, node in enumerate(graph.operations):
        yield f"{indent}{prefix}n{index} [shape=box{_ordering(node)} label=" + (
            f'"{index}: {operation_name(node.type)}"]'
        )
        for position, operand_index in enumerate(node.inputs):
            arrow = f"{prefix}d{operand_index} -> {prefix}n{index}"
            yield indent + arrow + _position(position, len(node.inputs))
        for position, operand_index in enumerate(node.outputs):
            arrow = f"{prefix}n{index} -> {prefix}d{operand_index}"
            yield indent + arrow + _position(position, len(node.outputs))


def _ordering(node: OperationNode) -> str:
    """Keeps the edges of the side that has more of them in order."""
    if max(len(node.inputs), len(node.outputs)) < 2:
        return ""
    return " ordering=in" if len(node.inputs) >= len(node.outputs) else " ordering=out"


def _position(position: int, count: int) -> str:
    """Label of one of several edges."""
    return f" [label={position}]" if count > 1 else ""


def _operand_label(operand: Operand, name: str) -> str:
    """What is written on an operand."""
    kind = _KINDS.get(operand.lifetime)
    text = f"{name}: {kind}" if kind else name
    if operand.subgraph is not None:
        text += f" {operand.subgraph}"
    text += f"\\n{_type_name(operand)}"
    if operand.dimensions:
        text += f"({'x'.join(map(str, operand.dimensions))})"
    if not operand.is_tensor and operand.extension_type is None and operand.data is not None:
        elements = operand.elements
        if elements is not None and elements.size == 1:
            text += f" = {elements.item()}"
    return text


def _type_name(operand: Operand) -> str:
    """Short name of an operand's type, if it has one."""
    if operand.type not in OPERAND_TRAITS:
        return operand.type_name
    return OPERAND_TRAITS[OperandCode(operand.type)].short_name or operand.type_name
