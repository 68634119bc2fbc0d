"""Metadata and outlines of files from plugins' front-ends, checked and made plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import numpy as np

from armpy.errors import ParserError
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.plugins.proxy.guarded_call import describe

Record = TypeVar("Record")
Converter = Callable[[Any], Any]  # Any: by field
"""Converts a value to a plain one, or raises ParserError if it is of another type."""


def plain_metadata(given: object) -> ModelMetadata:
    """Return a file's metadata as plain text and numbers; empty metadata for None.

    Raises ParserError if it is not a ModelMetadata, or a field has the wrong type; BaseException
    (what the plugin's objects raise).
    """
    return ModelMetadata() if given is None else _record(ModelMetadata, given)


def plain_outline(given: object) -> FileOutline:
    """Return an outline of plain text and numbers, whose indexes are all in range.

    Raises ParserError if it is not a FileOutline, a field has the wrong type, or an index is out of
    range; BaseException (what the plugin's objects raise).
    """
    outline = _record(FileOutline, given)
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


def _record(kind: type[Record], answer: object) -> Record:
    """A record whose fields are of plain types."""
    if not isinstance(answer, kind):
        raise _wrong(kind.__name__, answer)
    plain = {f.name: _KINDS[str(f.type)](getattr(answer, f.name)) for f in fields(kind)}  # type: ignore[arg-type]  # all kinds are dataclasses
    return kind(**plain)


def _text(answer: object) -> str:
    if not isinstance(answer, str):
        raise _wrong("text", answer)
    return answer


def _scalar(kinds: Any, expected: str, convert: Converter, answer: object) -> Any:  # Any: by field
    if not isinstance(answer, kinds):
        raise _wrong(expected, answer)
    return convert(answer)


def _optional(convert: Converter, answer: object) -> Any:  # Any: by field
    return None if answer is None else convert(answer)


def _items(convert: Converter, answer: object) -> tuple[Any, ...]:  # Any: by field
    # A str is iterable too, but is not a list of strings.
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise _wrong("a list", answer)
    return tuple(convert(item) for item in answer)


def _named(convert: Converter, answer: object) -> dict[str, Any]:  # Any: by field
    if not isinstance(answer, Mapping):
        raise _wrong("a mapping", answer)
    return {_text(name): convert(item) for name, item in answer.items()}


def _named_index(answer: Any) -> tuple[str, int]:  # Any: a pair, or unpacking raises
    name, index = answer
    return _text(name), _WHOLE(index)


def _wrong(expected: str, answer: object) -> ParserError:
    return ParserError(
        "a part of the answer has the wrong type", expected=expected, actual=describe(answer)
    )


# NumPy's numbers, too.
_NUMBER = partial(_scalar, SupportsFloat, "a number", float)
_WHOLE = partial(_scalar, SupportsIndex, "a whole number", int)
_TRUTH = partial(_scalar, bool | np.bool_, "True or False", bool)

_KINDS: Mapping[str, Converter] = MappingProxyType(
    {
        "str": _text,
        "bool": _TRUTH,
        "int | None": partial(_optional, _WHOLE),
        "tuple[str, ...]": partial(_items, _text),
        "tuple[float, ...]": partial(_items, _NUMBER),
        "tuple[int, ...]": partial(_items, _WHOLE),
        "tuple[int | None, ...] | None": partial(
            _optional, partial(_items, partial(_optional, _WHOLE))
        ),
        "tuple[tuple[str, int], ...]": partial(_items, _named_index),
        "tuple[FileTensor, ...]": partial(_items, partial(_record, FileTensor)),
        "tuple[FileOperator, ...]": partial(_items, partial(_record, FileOperator)),
        "tuple[FileGraph, ...]": partial(_items, partial(_record, FileGraph)),
        "Mapping[str, str]": partial(_named, _text),
        "Mapping[str, tuple[str, ...]]": partial(_named, partial(_items, _text)),
        "Mapping[str, TensorMetadata]": partial(_named, partial(_record, TensorMetadata)),
    }
)
"""Converters of fields, by the text of their annotations in `outline` and `metadata`, which
``from __future__ import annotations`` keeps. Each record converts all its fields, so that a test of
one record finds a missing converter.
"""
