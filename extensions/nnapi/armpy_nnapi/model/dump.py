"""Draws models in Graphviz' language."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

from armpy.backend.extension import LARGEST_EXTENSION_ID
from armpy_nnapi.codes import (
    EXTENSION_PREFIX_SHIFT,
    OPERAND_TRAITS,
    OperandCode,
    is_extension,
    operation_name,
)
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.extensions.extensions import ExtensionLookup, no_extensions
from armpy_nnapi.results import bad_data
from armpy_nnapi.validation.described import IModel, described

_log = logging.getLogger("armpy_nnapi")

Find: TypeAlias = Callable[[str, int, bool], str]
"""Gives the name of an extension's operation, or operand type, of a number."""


class NameOf(Protocol):
    """Gives a vendor's name of a code; an empty one for NNAPI's own."""

    def __call__(self, code: int, *, is_operation: bool) -> str:
        """The name."""


class TextStream(Protocol):
    """A stream that text is written to."""

    def write(self, text: str, /) -> object:
        """Take text."""


_KINDS: Mapping[Lifetime, str] = MappingProxyType(
    {
        Lifetime.CONSTANT_COPY: "COPY",
        Lifetime.CONSTANT_REFERENCE: "REF",
        Lifetime.NO_VALUE: "NO",
        Lifetime.SUBGRAPH: "SUBGRAPH",
    }
)
"""Marks in the drawing for operands that no execution gives or writes."""


def graph_dump(
    model: IModel | ModelDescription, stream: TextStream | None = None, name: str = "model"
) -> str:
    """Draw a model.

    Parameters
    ----------
    model : Model or ModelDescription
        A finished model, or its description.
    stream : text file, optional
        The stream to write to; by default the log ``armpy_nnapi`` at level INFO.
    name : str
        Name in the first line, a comment.

    Returns
    -------
    str
        DOT, as it was written. Operands are ovals ``d<index>``, the model's inputs and outputs
        black; operations are boxes ``n<index>``. Referenced models are clusters of their own,
        whose names begin with ``m<number>_``. What belongs to a vendor's extension has its name,
        as far as the model's manager knows it.

    Raises
    ------
    NnapiError
        BAD_DATA if it is not a model, or the stream takes no text; BAD_STATE if the model is not
        finished.

    References
    ----------
    NNAPI ``graphDump``.
    """
    if stream is not None and not hasattr(stream, "write"):
        raise bad_data(
            "this is not a stream", where="graph_dump", expected="a text file", actual=repr(stream)
        )
    text = draw(described(model, "graph_dump"), name, _names_of(model))
    if stream is not None:
        stream.write(text)
    else:
        _log.info("%s", text)
    return text


def draw(description: ModelDescription, name: str = "model", find: Find = lambda *_: "") -> str:
    """Draw a model; the text that `graph_dump` writes.

    Parameters
    ----------
    find : callable
        Gives the name of an extension's type or operation, as far as it is known.
    """

    def named(code: int, *, is_operation: bool) -> str:
        if not is_extension(code):
            return ""
        prefix = code >> EXTENSION_PREFIX_SHIFT
        extension = description.extensions.get(prefix, hex(prefix))
        number = code & LARGEST_EXTENSION_ID
        return f"{extension}/{find(extension, number, is_operation) or number}"

    # In one line: the rest of the name would be read as Graphviz's language.
    title = " ".join(name.split())
    lines = [f"// {title}", "digraph {", *_graph(description.main, named, "", "    ")]
    for number, graph in enumerate(description.referenced):
        # Graphviz draws a frame only where the name begins with cluster.
        lines += [f"    subgraph cluster_{number} {{", f'        label="referenced {number}"']
        lines += [*_graph(graph, named, f"m{number}_", "        "), "    }"]
    return "\n".join([*lines, "}", ""])


def _names_of(model: IModel | ModelDescription) -> Find:
    """A function that finds the names of extensions' types and operations in backends."""
    lookup: ExtensionLookup = no_extensions
    if not isinstance(model, ModelDescription):
        lookup = model.extension_lookup

    def find(extension: str, number: int, is_operation: bool) -> str:
        try:
            extension_found = lookup(extension)
        except NnapiError:  # it is drawn all the same
            return ""
        entry = (
            extension_found.operation(number)
            if is_operation
            else extension_found.operand_type(number)
        )
        return entry.name if entry is not None else ""

    return find


def _graph(graph: Subgraph, named: NameOf, prefix: str, indent: str) -> Iterator[str]:
    edges = {index: f"input[{k}]" for k, index in enumerate(graph.inputs)}
    edges |= {index: f"output[{k}]" for k, index in enumerate(graph.outputs)}
    for index, operand in enumerate(graph.operands):
        # White on black, as NNAPI draws the application's inputs and outputs.
        look = "style=filled fillcolor=black fontcolor=white " if index in edges else ""
        label = _operand_label(operand, named, edges.get(index, str(index)))
        yield f'{indent}{prefix}d{index} [{look}label="{label}"]'
    for index, node in enumerate(graph.operations):
        yield f"{indent}{prefix}n{index} [shape=box{_ordering(node)} label=" + (
            f'"{index}: {named(node.type, is_operation=True) or operation_name(node.type)}"]'
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
    # Graphviz keeps the order of one side only.
    return " ordering=in" if len(node.inputs) >= len(node.outputs) else " ordering=out"


def _position(position: int, count: int) -> str:
    """Label of one of several edges."""
    return f" [label={position}]" if count > 1 else ""


def _operand_label(operand: Operand, named: NameOf, name: str) -> str:
    kind = _KINDS.get(operand.lifetime)
    text = f"{name}: {kind}" if kind else name
    if operand.subgraph is not None:
        text += f" {operand.subgraph}"
    text += f"\\n{named(operand.type, is_operation=False) or _type_name(operand)}"
    if operand.dimensions:
        text += f"({'x'.join(map(str, operand.dimensions))})"
    # A tensor's elements are too many, and an extension's mean something to its vendor alone.
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
