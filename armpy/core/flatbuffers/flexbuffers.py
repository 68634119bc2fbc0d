"""Options of custom operators: a map of names to numbers and vectors, as FlexBuffers store it.

References
----------
FlexBuffers internals, https://flatbuffers.dev/internals: values are read from the end, offsets
lead backwards, and the widths of both are said where they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TypeAlias

from armpy.errors import ParserError

_MAP = 9
_INT, _UINT, _FLOAT, _BOOL = 1, 2, 3, 26
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
_VECTORS = {11: _INT, 12: _UINT, 13: _FLOAT}
_CODES = {
    _INT: {1: "b", 2: "h", 4: "i", 8: "q"},
    _UINT: {1: "B", 2: "H", 4: "I", 8: "Q"},
    _FLOAT: {4: "f", 8: "d"},
    _BOOL: {1: "B", 2: "H", 4: "I", 8: "Q"},
}
_MOST_ENTRIES = 1024
"""Maximum number of entries of a map, and of elements of a vector."""
_LONGEST_KEY = 256


Number: TypeAlias = float | int | bool
Entry: TypeAlias = Number | tuple[Number, ...]


def read_options(data: bytes) -> Mapping[str, Number]:
    """The numbers of a map by name; entries of other kinds are left out.

    Raises
    ------
    ParserError
        If the bytes are not a map.
    """
    entries = read_entries(data)
    return {name: entry for name, entry in entries.items() if not isinstance(entry, tuple)}


def read_entries(data: bytes) -> Mapping[str, Entry]:
    """The numbers and the typed vectors of a map by name; other entries are left out.

    Raises
    ------
    ParserError
        If the bytes are not a map.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise _damaged() from error


def _read(data: bytes) -> dict[str, Entry]:
    """The map at the end of the bytes."""
    width, packed = data[-1], data[-2]
    kind, child_width = packed >> 2, 1 << (packed & 3)
    if kind != _MAP:
        raise _damaged()
    start = _target(data, len(data) - 2 - width, width)
    length = int(_number(data, start - child_width, child_width, _UINT))
    if length > _MOST_ENTRIES:
        raise _damaged()
    keys_at = _target(data, start - 3 * child_width, child_width)
    keys_width = int(_number(data, start - 2 * child_width, child_width, _UINT))
    entries: dict[str, Entry] = {}
    for index in range(length):
        key_at = _target(data, keys_at + index * keys_width, keys_width)
        end = data.index(0, key_at, key_at + _LONGEST_KEY) if 0 in data[key_at:] else key_at
        key = data[key_at:end].decode()
        place = start + index * child_width
        packed = data[start + length * child_width + index]
        kind, width = packed >> 2, 1 << (packed & 3)
        if kind in _INDIRECT:
            entries[key] = _number(data, _target(data, place, child_width), width, _INDIRECT[kind])
        elif kind in _CODES:
            entries[key] = _number(data, place, child_width, kind)
        elif kind in _VECTORS:
            entries[key] = _vector(data, _target(data, place, child_width), width, _VECTORS[kind])
    return entries


def _vector(data: bytes, start: int, width: int, kind: int) -> tuple[Number, ...]:
    """The numbers of a typed vector, whose length is in front of them."""
    length = int(_number(data, start - width, width, _UINT))
    if length > _MOST_ENTRIES:
        raise _damaged()
    return tuple(_number(data, start + index * width, width, kind) for index in range(length))


def _target(data: bytes, place: int, width: int) -> int:
    target = place - int(_number(data, place, width, _UINT))
    if not 0 <= target <= place:
        raise _damaged()
    return target


def _number(data: bytes, place: int, width: int, kind: int) -> Number:
    if place < 0:
        raise _damaged()
    value: float | int = struct.unpack_from(f"<{_CODES[kind][width]}", data, place)[0]
    return bool(value) if kind == _BOOL else value


def _damaged() -> ParserError:
    """The error for bytes that are not a map."""
    return ParserError("the custom options are damaged", expected="a FlexBuffers map")
