"""Writer of flatbuffers files, front to back.

Notes
-----
A table follows its vtable, and its children follow the table: offsets are known as soon as
their targets are written, and are filled in then.

References
----------
FlatBuffers, "Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from armpy.errors import UnimplementedError
from armpy.plugins.hooks.flatbuffers import Schema

BUFFER_ALIGNMENT_BYTES = 16

_LARGEST_BYTES = 2**31 - 1
_OFFSET = struct.Struct("<I")
_NUMBERS = (bool, int, float, np.number)
"""Types of values that are in the table itself; it leads to all others."""

Child: TypeAlias = Union[str, bytes, npt.NDArray[np.generic], "FlatTable", Sequence["FlatTable"]]
"""Value that is beside its table."""

Field: TypeAlias = bool | int | float | Child


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table to be written."""

    name: str  # in the schema
    # Fields left out have their defaults. Vectors of numbers are arrays; bytes are aligned to
    # `BUFFER_ALIGNMENT_BYTES`, as TFLite expects of a tensor's elements.
    fields: Mapping[str, Field]


def write_flatbuffer(root: FlatTable, identifier: bytes, schema: Schema) -> bytes:
    """A file that holds a table.

    Parameters
    ----------
    identifier : bytes
        The four bytes that name the format.
    schema : Schema
        Of the format.

    Raises
    ------
    UnimplementedError
        If it is larger than offsets can say.
    """
    writer = _Writer(identifier, schema)
    writer.finish(root)
    return bytes(writer.data)


class _Writer:
    """The file in the making."""

    def __init__(self, identifier: bytes, schema: Schema) -> None:
        self.data = bytearray(4) + identifier
        self._schema = schema
        self._vtables: dict[bytes, int] = {}  # positions; tables of the same form share one

    def finish(self, root: FlatTable) -> None:
        """Write everything."""
        self._fill(0, self._table(root))

    def _align(self, size_bytes: int, ahead_bytes: int = 0) -> None:
        """Let what follows, so many bytes ahead, begin at a multiple of a size."""
        if missing_bytes := -(len(self.data) + ahead_bytes) % size_bytes:
            self.data += bytes(missing_bytes)

    def _fill(self, at: int, target: int) -> None:
        """Write the offset at a place that leads to another."""
        _OFFSET.pack_into(self.data, at, target - at)

    def _table(self, table: FlatTable) -> int:
        """Write a table and the objects it points to; return its place."""
        slots, numbers, children = _entries(table, self._schema)
        vtable, form, order, offsets = _layout(tuple(slots))
        if vtable not in self._vtables:
            self._align(2)
            self._vtables[vtable] = len(self.data)
            self.data += vtable
        self._align(8)
        start = len(self.data)
        self.data += form.pack(start - self._vtables[vtable], *[numbers[i] for i in order])
        for number, child in children:
            self._fill(start + offsets[number], self._child(child))
        return start

    def _child(self, value: Child) -> int:
        """Write what a field points to; where it is."""
        if isinstance(value, np.ndarray):
            is_little = value.dtype.str[0] != ">"  # `astype` takes longer than all else
            array = value if is_little else value.astype(value.dtype.newbyteorder("<"))
            return self._vector(array.tobytes(), array.itemsize, array.size)
        if isinstance(value, FlatTable):
            return self._table(value)
        if isinstance(value, str):
            content = value.encode()
            return self._vector(content + b"\0", 1, len(content))
        if isinstance(value, bytes):
            return self._vector(value, BUFFER_ALIGNMENT_BYTES, len(value))
        self._align(4)
        start = len(self.data)
        self.data += _OFFSET.pack(len(value)) + bytes(4 * len(value))
        for at, table in enumerate(value):
            self._fill(start + 4 + 4 * at, self._table(table))
        return start

    def _vector(self, content: bytes, alignment_bytes: int, count: int) -> int:
        """Write a vector of elements; where it is."""
        if len(self.data) + len(content) > _LARGEST_BYTES:
            raise UnimplementedError(
                "the file would be larger than offsets in it can say",
                where="flatbuffer",
                expected=f"at most {_LARGEST_BYTES} bytes",
                actual=f"more than {len(self.data) + len(content)}",
            )
        self._align(max(4, alignment_bytes), 4)
        start = len(self.data)
        self.data += _OFFSET.pack(count)
        self.data += content
        return start


@lru_cache(maxsize=1024)
def _layout(
    slots: tuple[tuple[int, str], ...],
) -> tuple[bytes, struct.Struct, list[int], dict[int, int]]:
    """The vtable, form, order and offsets of tables with some fields, by number and code."""
    order = sorted(range(len(slots)), key=lambda i: -struct.calcsize(slots[i][1]))
    end, codes, offsets = 4, "<i", {}  # after the offset to the vtable
    for number, code in (slots[i] for i in order):
        size = struct.calcsize(code)
        codes += f"{-end % size}x{code}"
        offsets[number] = end + -end % size
        end = offsets[number] + size
    count = max(offsets, default=-1) + 1
    places = [offsets.get(number, 0) for number in range(count)]
    vtable = struct.pack(f"<{2 + count}H", 4 + 2 * count, end, *places)
    return vtable, struct.Struct(codes), order, offsets


def _entries(
    table: FlatTable, schema: Schema
) -> tuple[list[tuple[int, str]], list[float], list[tuple[int, Child]]]:
    """Number and code of each field that is written, and its number; then the fields beside it."""
    known = schema.tables.get(table.name, {})
    slots: list[tuple[int, str]] = []
    numbers: list[float] = []
    children: list[tuple[int, Child]] = []
    for name, value in table.fields.items():
        number, kind, default = known[name]
        if isinstance(value, _NUMBERS):
            if value != default:
                slots.append((number, kind))
                numbers.append(value)
            continue
        if kind == "union":
            assert isinstance(value, FlatTable)
            slots.append((number - 1, "B"))
            numbers.append(_union_codes(schema, name)[value.name])
        slots.append((number, "I"))
        numbers.append(0)
        children.append((number, value))
    return slots, numbers, children


@lru_cache(maxsize=64)
def _union_codes(schema: Schema, field: str) -> dict[str, int]:
    """Numbers of the tables that a union field may hold, by name."""
    return {kind: code for code, kind in schema.union_kinds(field).items()}
