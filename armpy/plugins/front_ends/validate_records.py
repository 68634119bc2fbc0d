"""Metadata and outlines of files from plugins' front-ends, checked and made plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, SupportsFloat, TypeVar

from armpy.errors import ParserError
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.plugins.proxy.guarded_call import describe, plain_text

R = TypeVar("R")
Plain = Callable[[object], Any]  # Any: by field
"""Makes a value plain, or raises ParserError if it is of another type."""


def plain_metadata(given: object) -> ModelMetadata:
    """A file's metadata as plain text and numbers; None says nothing.

    Raises ParserError if it is something else, or a field is of another type; BaseException
    (whatever the plugin's objects raise).
    """
    return ModelMetadata() if given is None else _record(ModelMetadata, given)


def plain_outline(given: object) -> FileOutline:
    """An outline of plain texts and numbers, whose places all lead somewhere.

    Raises ParserError if it is something else, or a place leads nowhere; BaseException (whatever
    the plugin's objects raise).
    """
    outline = _record(FileOutline, given)
    num_graphs = len(outline.graphs)
    if not num_graphs:
        raise ParserError("the outline has no graph")
    for graph in outline.graphs:
        num_tensors = len(graph.tensors)
        _check_places((*graph.inputs, *graph.outputs), num_tensors)
        for operator in graph.operators:
            _check_places((*operator.inputs, *operator.outputs), num_tensors, LEFT_OUT)
            _check_places([place for _, place in operator.graphs], num_graphs)
    return outline


def _check_places(places: Iterable[int], count: int, lowest: int = 0) -> None:
    for place in places:
        if not lowest <= place < count:
            raise ParserError(
                "a place in the outline leads nowhere",
                expected=f"{lowest} to {count - 1}",
                actual=str(place),
            )


def _record(kind: type[R], answer: object) -> R:
    """A record whose fields are of plain types; not one of a subclass, which may be code."""
    if type(answer) is not kind:
        raise _wrong(kind.__name__, answer)
    plain = {f.name: _KINDS[str(f.type)](getattr(answer, f.name)) for f in fields(kind)}  # type: ignore[arg-type]  # all kinds are dataclasses
    return kind(**plain)


def _text(answer: object) -> str:
    if not isinstance(answer, str):
        raise _wrong("text", answer)
    return plain_text(answer)


def _number(answer: object) -> float:
    if not isinstance(answer, SupportsFloat):  # NumPy's numbers, too
        raise _wrong("a number", answer)
    return float(answer)


def _whole(answer: Any) -> int:  # Any: NumPy's numbers will do as well
    return int(answer)


def _optional(make: Plain, answer: object) -> Any:  # Any: by field
    return None if answer is None else make(answer)


def _items(make: Plain, answer: object) -> tuple[Any, ...]:  # Any: by field
    # A text can be gone through as well, letter by letter, and is no list of texts.
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise _wrong("a list", answer)
    return tuple(make(item) for item in answer)


def _named(make: Plain, answer: object) -> dict[str, Any]:  # Any: by field
    if not isinstance(answer, Mapping):
        raise _wrong("a mapping", answer)
    return {_text(name): make(item) for name, item in answer.items()}


def _named_place(answer: Any) -> tuple[str, int]:  # Any: a pair, or unpacking raises
    name, place = answer
    return _text(name), int(place)


def _wrong(expected: str, answer: object) -> ParserError:
    return ParserError(
        "a part of the answer has the wrong type", expected=expected, actual=describe(answer)
    )


_KINDS: Mapping[str, Plain] = MappingProxyType(
    {
        "str": _text,
        # Not by `bool`, which would run the code of other objects.
        "bool": lambda answer: answer is True,
        "int | None": partial(_optional, _whole),
        "tuple[str, ...]": partial(_items, _text),
        "tuple[float, ...]": partial(_items, _number),
        "tuple[int, ...]": partial(_items, _whole),
        "tuple[int | None, ...] | None": partial(
            _optional, partial(_items, partial(_optional, _whole))
        ),
        "tuple[tuple[str, int], ...]": partial(_items, _named_place),
        "tuple[FileTensor, ...]": partial(_items, partial(_record, FileTensor)),
        "tuple[FileOperator, ...]": partial(_items, partial(_record, FileOperator)),
        "tuple[FileGraph, ...]": partial(_items, partial(_record, FileGraph)),
        "Mapping[str, str]": partial(_named, _text),
        "Mapping[str, tuple[str, ...]]": partial(_named, partial(_items, _text)),
        "Mapping[str, TensorMetadata]": partial(_named, partial(_record, TensorMetadata)),
    }
)
"""What makes a field plain, by its type."""
