"""Writer of flatbuffers files, front to back.

Notes
-----
A table follows its vtable, and its children follow the table: offsets are known as soon as
what they lead to is written, and are filled in then.

References
----------
FlatBuffers, "Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from armpy.errors import UnimplementedError
from armpy.plugins.hooks.flatbuffers import Schema

BUFFER_ALIGNMENT_BYTES = 16

_LARGEST_BYTES = 2**31 - 1
_OFFSET = "I"

Field: TypeAlias = Union[
    bool, int, float, str, bytes, npt.NDArray[np.generic], "FlatTable", Sequence["FlatTable"]
]


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

    def finish(self, root: FlatTable) -> None:
        """Write everything."""
        self._fill(0, self._table(root))

    def _align(self, size_bytes: int, ahead_bytes: int = 0) -> None:
        """Let what follows, so many bytes ahead, begin at a multiple of a size."""
        self.data.extend(bytes(-(len(self.data) + ahead_bytes) % size_bytes))

    def _fill(self, at: int, target: int) -> None:
        """Write the offset at a place that leads to another."""
        if len(self.data) > _LARGEST_BYTES:
            raise UnimplementedError(
                "the file would be larger than offsets in it can say",
                where="flatbuffer",
                expected=f"at most {_LARGEST_BYTES} bytes",
                actual=f"more than {len(self.data)}",
            )
        struct.pack_into("<" + _OFFSET, self.data, at, target - at)

    def _table(self, table: FlatTable) -> int:
        """Write a table and what it points to; where it is."""
        entries = sorted(
            _entries(table, self._schema), key=lambda entry: -struct.calcsize(entry[1])
        )
        offsets: dict[int, int] = {}
        end = 4  # after the offset to the vtable
        for number, code, _ in entries:
            size = struct.calcsize(code)
            end += -end % size
            offsets[number] = end
            end += size
        count = max(offsets, default=-1) + 1
        self._align(2)
        vtable = len(self.data)
        slots = [offsets.get(number, 0) for number in range(count)]
        self.data += struct.pack(f"<{2 + count}H", 4 + 2 * count, end, *slots)
        self._align(8)
        start = len(self.data)
        self.data += struct.pack("<i", start - vtable) + bytes(end - 4)
        pending: list[tuple[int, Field, str]] = []
        for number, code, value in entries:
            at = start + offsets[number]
            if isinstance(value, bool | int | float | np.number):
                struct.pack_into("<" + code, self.data, at, value)
            else:
                pending.append((at, value, code))
        for at, value, _ in pending:
            self._fill(at, self._child(value))
        return start

    def _child(self, value: Field) -> int:
        """Write what a field points to; where it is."""
        if isinstance(value, FlatTable):
            return self._table(value)
        if isinstance(value, str):
            return self._vector(value.encode() + b"\0", 1, len(value.encode()))
        if isinstance(value, bytes):
            return self._vector(value, BUFFER_ALIGNMENT_BYTES, len(value))
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
            return self._vector(array.tobytes(), max(4, array.itemsize), array.size)
        assert not isinstance(value, bool | int | float)
        self._align(4)
        start = len(self.data)
        self.data += struct.pack("<" + _OFFSET, len(value)) + bytes(4 * len(value))
        for index, one in enumerate(value):
            self._fill(start + 4 + 4 * index, self._table(one))
        return start

    def _vector(self, content: bytes, alignment_bytes: int, count: int) -> int:
        """Write a vector of elements; where it is."""
        self._align(max(4, alignment_bytes), 4)
        start = len(self.data)
        self.data += struct.pack("<" + _OFFSET, count)
        self.data += content
        return start


def _entries(table: FlatTable, schema: Schema) -> list[tuple[int, str, Field]]:
    """Number, code and value of each field that is written; a union has one for its type."""
    known = schema.tables.get(table.name, {})
    found: list[tuple[int, str, Field]] = []
    for name, value in table.fields.items():
        number, kind, default = known[name]
        if kind == "union":
            assert isinstance(value, FlatTable)
            kinds = {kind: code for code, kind in schema.union_kinds(name).items()}
            found.append((number - 1, "B", kinds[value.name]))
            found.append((number, _OFFSET, value))
        elif isinstance(value, bool | int | float | np.number):
            if value != default:
                found.append((number, kind, value))
        else:
            found.append((number, _OFFSET, value))
    return found
