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
from functools import lru_cache
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import Schema
from armpy.errors import UnimplementedError

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
        Schema of the format.

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
        known = self._schema.tables.get(table.name, {})
        names = [table.name]
        numbers: list[float] = []
        children: list[Child] = []
        for name, value in table.fields.items():
            if not isinstance(value, _NUMBERS):
                if known[name][1] == "union":
                    assert isinstance(value, FlatTable)
                    numbers.append(_union_codes(self._schema, name)[value.name])
                children.append(value)
            elif value != known[name][2]:
                numbers.append(value)
            else:
                continue
            names.append(name)
        vtable, form, order, offsets = _layout(self._schema, tuple(names))
        if vtable not in self._vtables:
            self._align(2)
            self._vtables[vtable] = len(self.data)
            self.data += vtable
        self._align(8)
        start = len(self.data)
        self.data += form.pack(start - self._vtables[vtable], *[numbers[i] for i in order])
        for offset, child in zip(offsets, children, strict=True):
            self._fill(start + offset, self._child(child))
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
        places: dict[int, int] = {}  # a table that is in the vector again is written once
        for at, table in enumerate(value, 1):
            if (place := places.get(id(table))) is None:
                place = places[id(table)] = self._table(table)
            self._fill(start + 4 * at, place)
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
    schema: Schema, names: tuple[str, ...]
) -> tuple[bytes, struct.Struct, list[int], list[int]]:
    """The vtable and form of tables of a name with the fields that follow it.

    Then the order of their numbers in the form, and where the offsets of the others are.
    """
    slots: list[tuple[int, str]] = []
    known = schema.tables.get(names[0], {})
    numbers: list[int] = []  # slots of those that are in the table
    others: list[int] = []
    for number, kind, _ in (known[name] for name in names[1:]):
        if kind == "union":
            numbers.append(len(slots))
            slots.append((number - 1, "B"))
        is_number = len(kind) == 1
        (numbers if is_number else others).append(len(slots))
        slots.append((number, kind if is_number else "4x"))
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
    ordered = [numbers.index(i) for i in order if i in numbers]
    return vtable, struct.Struct(codes), ordered, [offsets[slots[i][0]] for i in others]


@lru_cache(maxsize=64)
def _union_codes(schema: Schema, field: str) -> dict[str, int]:
    """Numbers of the tables that a union field may hold, by name."""
    return {kind: code for code, kind in schema.union_kinds(field).items()}
