"""Metadata and outlines of files from plugins' front-ends, checked and made plain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, SupportsFloat, SupportsIndex, get_args, get_origin, get_type_hints

import numpy as np

from armpy.errors import ParserError
from armpy.plugins.hooks.metadata import ModelMetadata
from armpy.plugins.hooks.outline import LEFT_OUT, FileOutline
from armpy.plugins.proxy.guarded_call import describe

# What is accepted for a scalar, NumPy's as well, and its name in messages.
_SCALARS: Mapping[type, tuple[Any, str]] = {  # Any: one class, several, or a protocol
    str: (str, "text"),
    int: (SupportsIndex, "a whole number"),
    float: (SupportsFloat, "a number"),
    bool: ((bool, np.bool_), "True or False"),
}


def plain_metadata(given: object) -> ModelMetadata:
    """Return a file's metadata as plain text and numbers; empty metadata for None.

    Raises ParserError if it is not a ModelMetadata, or a field has the wrong type; BaseException
    (what the plugin's objects raise).
    """
    return ModelMetadata() if given is None else _plain(ModelMetadata, given)


def plain_outline(given: object) -> FileOutline:
    """Return an outline of plain text and numbers, whose indexes are all in range.

    Raises ParserError if it is not a FileOutline, a field has the wrong type, or an index is out of
    range; BaseException (what the plugin's objects raise).
    """
    outline: FileOutline = _plain(FileOutline, given)
    num_graphs = len(outline.graphs)
    if not num_graphs:
        raise ParserError("the outline has no graph")
    for graph in outline.graphs:
        num_tensors = len(graph.tensors)
        where = f"graph '{graph.name}' of the outline"
        _check_indexes((*graph.inputs, *graph.outputs), num_tensors, where, "tensor")
        for node in graph.operators:
            inside = f"{where} / operator '{node.name}'"
            _check_indexes((*node.inputs, *node.outputs), num_tensors, inside, "tensor", LEFT_OUT)
            _check_indexes([index for _, index in node.graphs], num_graphs, inside, "graph")
    return outline


def _check_indexes(
    indexes: Iterable[int], count: int, where: str, noun: str, lowest: int = 0
) -> None:
    for index in indexes:
        if not lowest <= index < count:
            raise ParserError(
                f"{noun} index {index} is out of range",
                where=where,
                expected=f"{lowest} to {count - 1}",
                actual=str(index),
            )


def _plain(kind: Any, answer: Any) -> Any:  # Any: what a field's annotation stands for
    """Return an answer as a plain object of a type; raises ParserError if it has another one."""
    if kind in _SCALARS:
        accepted, expected = _SCALARS[kind]
        _check_type(isinstance(answer, accepted), expected, answer)
        return answer if kind is str else kind(answer)
    if isinstance(kind, type) and is_dataclass(kind):
        _check_type(isinstance(answer, kind), kind.__name__, answer)
        types = _types_of(kind)
        return kind(**{name: _plain(types[name], getattr(answer, name)) for name in types})
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # T | None
        return None if answer is None else _plain(parts[0], answer)
    if origin is Mapping:
        _check_type(isinstance(answer, Mapping), "a mapping", answer)
        return {_plain(str, name): _plain(parts[1], item) for name, item in answer.items()}
    # A text is iterable, too, but is not a list of texts.
    is_list = isinstance(answer, Iterable) and not isinstance(answer, str)
    _check_type(is_list, "a list", answer)
    if parts[1] is Ellipsis:  # tuple[T, ...]
        return tuple(_plain(parts[0], item) for item in answer)
    return tuple(_plain(part, item) for part, item in zip(parts, answer, strict=True))


@cache
def _types_of(kind: type) -> Mapping[str, Any]:  # Any: as above
    """Return the types of a record's fields, evaluated once: a file may have many records."""
    return get_type_hints(kind)


def _check_type(fits: bool, expected: str, answer: object) -> None:
    if not fits:
        raise ParserError(
            "a part of the answer has the wrong type", expected=expected, actual=describe(answer)
        )
