"""Checked access to the tables of a flatbuffers file, such as .tflite and .armnn.

Offsets in a file may lead anywhere. This is the one place that follows them: it turns each way
in which that fails on a damaged file into a `ParserError`, checks the length of vectors against
the size of the file before anything is made from them, and limits how much is read in total, so
that tables and vectors that lie over each other cannot make a small file cost much.

A format subclasses `TableReader` and gives it a `Schema`.

References
----------
FlatBuffers, "Internals".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from armpy.errors import ArmpyError, ParserError

MAX_TEXT_BYTES = 65536
"""Longest name in a file; names get into messages, and one may serve many tensors."""

_DAMAGE = (struct.error, IndexError, ValueError)
"""What reading raises where an offset leads nowhere."""

_OFFSET = struct.Struct("<I")
_SLOT = struct.Struct("<H")
_BACK_OFFSET = struct.Struct("<i")
_NUMBERS = {code: struct.Struct(f"<{code}") for code in "bBiIqQf?"}
_ELEMENTS: dict[str, np.dtype[Any]] = {  # Any: element types differ
    f"[{code}]": np.dtype(f"<{code}") for code in "BHIifq"
}

_MOST_SLOTS = 24

_SLOTS = [struct.Struct(f"<{number}H") for number in range(_MOST_SLOTS + 1)]

_OFFSET_BYTES = 4
_TABLE_BYTES = 8
_READS_PER_BYTE = 8
_FREE_READS_BYTES = 65536

# A table without fields at byte 4, after its field list: every field has its default.
_NO_FIELDS = memoryview(struct.pack("<HHi", 4, 4, 4))

_Choice = TypeVar("_Choice")

Fields: TypeAlias = Mapping[str, Mapping[str, tuple[int, str, float]]]
"""Fields of tables by name: number in the table, type, default.

The type is a code of `struct` for a number, ``text``, ``union``, the name of a table, or one of
these in brackets for a vector. The field before a union says which table it holds.
"""


class Ledger:
    """Bytes of a file that may still be read, so that no file is read many times over.

    Parameters
    ----------
    size_bytes : int
        Size of the file.
    """

    __slots__ = ("left_bytes", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.left_bytes = _READS_PER_BYTE * size_bytes + _FREE_READS_BYTES

    def charge(self, num_bytes: int) -> None:
        """Count bytes that are about to be read or copied.

        Raises
        ------
        ParserError
            If the file's allowance is used up.
        """
        self.left_bytes -= num_bytes
        if self.left_bytes < 0:
            raise ParserError(
                "the file is damaged: its parts refer to the same bytes again and again",
                expected=f"less than {_READS_PER_BYTE} readings of {self.size_bytes} bytes",
            )


class Schema:
    """The tables of a kind of file, and its enumerations.

    Parameters
    ----------
    tables : mapping of str to mapping
        See `Fields`.
    enumerations : mapping of str to str
        Names of enumerators, in the order of their numbers, separated by spaces; ``-`` for a number
        without one. Those of a union are the tables that it may hold.
    unions : mapping of str to str
        The enumeration of a union field; without an entry, it is called as the field is.
    """

    __slots__ = ("enumerations", "num_slots", "tables", "unions")

    def __init__(
        self,
        tables: Fields,
        enumerations: Mapping[str, str],
        unions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.tables = tables
        self.enumerations = enumerations
        self.unions = unions
        self.num_slots = {
            kind: 1 + max((field[0] for field in fields.values()), default=-1)
            for kind, fields in tables.items()
        }  # how many fields of each table have to be looked at

    def enumerators(self, kind: str) -> dict[int, str]:
        """Names of the enumerators of an enumeration, by number."""
        return _numbered(self.enumerations[kind])

    def union_kinds(self, field: str) -> dict[int, str]:
        """Names of the tables that a union field may hold, by number."""
        return self.enumerators(self.unions.get(field, field))


@contextmanager
def table_errors(table: TableReader) -> Iterator[None]:
    """Raise errors of armpy's that come of a table's contents as errors of the file.

    Raises
    ------
    ParserError
        With the place of the table.
    """
    try:
        yield
    except ParserError:
        raise
    except ArmpyError as error:
        raise ParserError(
            error.failed,
            where=table.where,
            expected=error.expected,
            actual=error.actual,
            fix=error.fix,
        ) from error


class TableReader:
    """One table of a file.

    Parameters
    ----------
    data : memoryview of uint8
        The file.
    position : int
        Where the table is.
    kind : str
        Name of the table in the schema.
    where : str
        The thing that the table describes, for messages.

    Attributes
    ----------
    schema : Schema
        Schema of the format; a subclass gives it.
    """

    schema: ClassVar[Schema]

    __slots__ = ("_data", "_fields", "_ledger", "_num_slots", "_position", "_slots", "where")

    def __init__(
        self, data: memoryview, position: int, kind: str, ledger: Ledger, where: str
    ) -> None:
        self._data = data
        self._position = position
        self._fields = self.schema.tables[kind]
        self._num_slots = self.schema.num_slots[kind]
        self._ledger = ledger
        self._slots: tuple[int, ...] | None = None
        self.where = where

    def integer(self, field: str) -> int:
        """An integer field."""
        return int(self._number(field))

    def flag(self, field: str) -> bool:
        """A boolean field."""
        return bool(self._number(field))

    def real(self, field: str) -> float:
        """A finite number.

        Raises
        ------
        ParserError
            If it is NaN or infinite.
        """
        value = float(self._number(field))
        if not math.isfinite(value):
            raise self.error(f"the field {field} is not a finite number", actual=repr(value))
        return value

    def choice(self, field: str, choices: Mapping[int, _Choice], kind: str) -> _Choice:
        """An enumerator, looked up in a table.

        Parameters
        ----------
        choices : mapping of int to object
            Meaning of each supported enumerator.
        kind : str
            Name of the enumeration in the schema, for messages.
        """
        number = self.integer(field)
        if number not in choices:
            names = self.schema.enumerators(kind)
            raise self.error(
                f"{field} is not supported",
                expected=" or ".join(names.get(n, str(n)) for n in choices),
                actual=names.get(number, str(number)),
            )
        return choices[number]

    def enumerator(self, field: str, kind: str) -> str:
        """The name of an enumerator; empty if the schema has none of that number."""
        return self.schema.enumerators(kind).get(self.integer(field), "")

    def text(self, field: str) -> str:
        """A string; empty if the file leaves it out. Bytes that are not UTF-8 are replaced."""
        return self._text(field, *self._vector(field))

    def texts(self, field: str) -> list[str]:
        """The strings of a vector."""
        start, length = self._vector(field)
        self._check_length(field, length * _OFFSET_BYTES)
        places = range(start, start + length * _OFFSET_BYTES, _OFFSET_BYTES)
        return [self._text(field, *self._vector_at(field, place)) for place in places]

    def _text(self, field: str, start: int, length: int) -> str:
        """The bytes of a string, as text."""
        raw = self._data[start : start + length]
        if len(raw) < length:
            raise self._damaged(field)
        self._ledger.charge(len(raw) + _OFFSET_BYTES)
        if len(raw) > MAX_TEXT_BYTES:
            raise self.error(
                f"the file is damaged: {field} is too long",
                expected=f"at most {MAX_TEXT_BYTES} bytes",
                actual=str(len(raw)),
            )
        return str(raw, "utf-8", "replace")

    def external_data(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """A view of bytes of the file at a place counted from its beginning.

        Raises
        ------
        ParserError
            If the file ends before.
        """
        if offset + size > self._ledger.size_bytes:
            raise self.error(
                "the file is damaged: data lies past its end",
                expected=f"at most {self._ledger.size_bytes} bytes",
                actual=f"{offset + size}",
            )
        return np.frombuffer(self._data, np.uint8, size, offset)

    def leaves_out(self, field: str) -> bool:
        """Return whether the file does not hold a vector at all, not even an empty one."""
        return not self._place(field)

    def vector(self, field: str) -> npt.NDArray[Any]:  # Any: element types differ by field
        """A view of a vector of numbers, without a copy; empty if the file leaves it out."""
        start, length = self._vector(field)
        if not length:
            return _EMPTY
        self._check_length(field, length)
        dtype = _ELEMENTS[self._fields[field][1]]
        try:
            return np.frombuffer(self._data, dtype, length, start)
        except _DAMAGE as error:
            raise self._damaged(field) from error

    def numbers(self, field: str) -> list[Any]:  # Any: int or float, by field
        """The elements of a vector of numbers."""
        view = self.vector(field)
        self._ledger.charge(view.nbytes)
        elements: list[Any] = view.tolist()  # Any: as above
        return elements

    def table(self, field: str) -> TableReader | None:
        """A table inside this one; None if the file leaves it out."""
        place = self._place(field)
        if not place:
            return None
        self._ledger.charge(_TABLE_BYTES)
        return self._table_at(field, place, self._fields[field][1], self.where)

    def tables(self, field: str, kind: str) -> Tables:
        """A vector of tables.

        Parameters
        ----------
        kind : str
            Name of what each table describes, for messages: ``tensor``.
        """
        start, length = self._vector(field)
        self._check_length(field, length * _OFFSET_BYTES)
        return Tables(self, field, kind, start, length)

    def item(self, field: str, place: int, where: str) -> TableReader:
        """One table of a vector of tables, whose offset is at a place in the file."""
        self._ledger.charge(_TABLE_BYTES)
        return self._table_at(field, place, self._fields[field][1][1:-1], where)

    def union(self, field: str, name: str) -> TableReader:
        """The table that a union field holds.

        Parameters
        ----------
        name : str
            Name of the table in the schema. A union that the file leaves out gives a table
            whose fields all have their defaults.

        Raises
        ------
        ParserError
            If the union holds another table.
        """
        stored, place = self._stored_kind(field), self._place(field)
        if not stored or not place:
            return self.defaults(name)
        names = self.schema.union_kinds(field)
        if names.get(stored) != name:
            actual = names.get(stored, str(stored))
            raise self.error("the options are of another operator", expected=name, actual=actual)
        return self._table_at(field, place, name, self.where)

    def defaults(self, name: str) -> TableReader:
        """A table, by its name in the schema, whose fields all have their defaults."""
        return type(self)(_NO_FIELDS, _OFFSET_BYTES, name, self._ledger, self.where)

    def union_kind(self, field: str) -> str:
        """Name of the table that a union holds; empty if it is left out, or not in the schema."""
        stored = self._stored_kind(field)
        names = self.schema.union_kinds(field)
        return names.get(stored, "") if stored and self._place(field) else ""

    def _stored_kind(self, field: str) -> int:
        """The number of the table that a union holds; 0 if it is left out."""
        place = self._place_of(field, self._fields[field][0] - 1)
        try:
            return self._data[place] if place else 0
        except _DAMAGE as error:
            raise self._damaged(field) from error

    def error(
        self, failed: str, *, expected: str = "", actual: str = "", fix: str = ""
    ) -> ParserError:
        """An error about what this table describes."""
        return ParserError(failed, where=self.where, expected=expected, actual=actual, fix=fix)

    def charge(self, num_bytes: int) -> None:
        """Count bytes that are about to be read or copied, see `Ledger.charge`."""
        self._ledger.charge(num_bytes)

    def _check_length(self, field: str, num_bytes: int) -> None:
        """Check that a vector is no longer than the file."""
        if num_bytes > self._ledger.size_bytes:
            raise self.error(
                f"the file is damaged: {field} is longer than the file",
                expected=f"at most {self._ledger.size_bytes} bytes",
                actual=f"{num_bytes} bytes",
                fix="Copy or export the file again",
            )

    def _number(self, field: str) -> float:
        """A number, or its default."""
        place = self._place(field)
        _, code, default = self._fields[field]
        if not place:
            return default
        try:
            number: float = _NUMBERS[code].unpack_from(self._data, place)[0]
        except _DAMAGE as error:
            raise self._damaged(field) from error
        return number

    def _vector(self, field: str) -> tuple[int, int]:
        """Return where a vector's or text's elements begin, and their number."""
        place = self._place(field)
        return self._vector_at(field, place) if place else (0, 0)

    def _vector_at(self, field: str, place: int) -> tuple[int, int]:
        """The same of the table that the offset at a place leads to."""
        try:
            place += _OFFSET.unpack_from(self._data, place)[0]
            return place + _OFFSET_BYTES, _OFFSET.unpack_from(self._data, place)[0]
        except _DAMAGE as error:
            raise self._damaged(field) from error

    def _table_at(self, field: str, place: int, kind: str, where: str) -> TableReader:
        """The table that the offset at a place leads to."""
        try:
            position = place + _OFFSET.unpack_from(self._data, place)[0]
        except _DAMAGE as error:
            raise self._damaged(field) from error
        return type(self)(self._data, position, kind, self._ledger, where)

    def _place(self, field: str) -> int:
        """Return the place of a field; 0 if the file leaves it out."""
        return self._place_of(field, self._fields[field][0])

    def _place_of(self, field: str, number: int) -> int:
        if self._slots is None:
            try:
                self._slots = self._read_slots()
            except _DAMAGE as error:
                raise self._damaged(field) from error
        offset = self._slots[number] if number < len(self._slots) else 0
        return self._position + offset if offset else 0

    def _read_slots(self) -> tuple[int, ...]:
        """The offsets of the fields, no further than the schema knows them."""
        data = self._data
        start = self._position - _BACK_OFFSET.unpack_from(data, self._position)[0]
        if start < 0:
            raise IndexError(start)
        (size,) = _SLOT.unpack_from(data, start)
        known = min(size // 2 - 2, self._num_slots)
        return _SLOTS[known].unpack_from(data, start + 4) if known > 0 else ()

    def _damaged(self, part: str) -> ParserError:
        """The error for an offset that leads nowhere."""
        return self.error(
            "the file is damaged or cut short",
            expected=f"all parts within the {self._ledger.size_bytes} bytes of the file",
            actual=f"part '{part}' outside of them",
            fix="Copy or export the file again",
        )


class Tables:
    """A vector of tables, each of which is read when it is asked for."""

    __slots__ = ("_field", "_kind", "_length", "_parent", "_start")

    def __init__(self, parent: TableReader, field: str, kind: str, start: int, length: int) -> None:
        self._parent = parent
        self._field = field
        self._kind = kind
        self._start = start
        self._length = length

    def __getitem__(self, index: int) -> TableReader:
        where = f"{self._kind} {index}"
        if not 0 <= index < self._length:
            raise self._parent.error(
                f"there is no {where}",
                expected=f"an index below {self._length}",
                actual=str(index),
            )
        return self._parent.item(self._field, self._start + _OFFSET_BYTES * index, where)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[TableReader]:
        return (self[index] for index in range(self._length))


@cache
def _numbered(names: str) -> dict[int, str]:
    """Names by their numbers."""
    return {n: name for n, name in enumerate(names.split()) if name != "-"}


_EMPTY: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
