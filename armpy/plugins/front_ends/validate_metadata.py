"""Metadata of a file from plugins' front-ends, checked and made plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from armpy.errors import ParserError
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.proxy.guarded_call import describe, plain_text

_Record = TypeVar("_Record", ModelMetadata, TensorMetadata)


def plain_metadata(given: object) -> ModelMetadata:
    """A file's metadata as plain text and numbers; None says nothing.

    Raises
    ------
    ParserError
        If it is something else, or a field is of another type.
    BaseException
        Whatever the plugin's objects raise.
    """
    return ModelMetadata() if given is None else _plain(ModelMetadata, given)


def _plain(kind: type[_Record], given: object) -> _Record:
    if type(given) is not kind:
        raise _wrong(kind.__name__, given)
    return kind(**{f.name: _KINDS[str(f.type)](getattr(given, f.name)) for f in fields(kind)})


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise _wrong("text", given)
    return plain_text(given)


def _number(given: object) -> float:
    if not isinstance(given, int | float):
        raise _wrong("a number", given)
    return float(given)


def _items(make: Callable[[object], Any], given: object) -> tuple[Any, ...]:  # Any: by field
    # A text can be gone through as well, letter by letter, and is no list of texts.
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _wrong("a list", given)
    return tuple(make(item) for item in given)


def _named(make: Callable[[object], Any], given: object) -> dict[str, Any]:  # Any: by field
    if not isinstance(given, Mapping):
        raise _wrong("a mapping", given)
    return {_text(name): make(item) for name, item in given.items()}


def _wrong(expected: str, given: object) -> ParserError:
    return ParserError(
        "a part of the metadata has the wrong type", expected=expected, actual=describe(given)
    )


_KINDS: Mapping[str, Callable[[object], Any]] = MappingProxyType(  # Any: by field
    {
        "str": _text,
        "tuple[str, ...]": partial(_items, _text),
        "tuple[float, ...]": partial(_items, _number),
        "Mapping[str, str]": partial(_named, _text),
        "Mapping[str, tuple[str, ...]]": partial(_named, partial(_items, _text)),
        "Mapping[str, TensorMetadata]": partial(_named, partial(_plain, TensorMetadata)),
    }
)
"""What makes a field plain, by its type."""
