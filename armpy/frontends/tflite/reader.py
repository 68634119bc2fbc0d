"""Checked access to the tables of a .tflite file.

The generated classes of the `tflite` package follow whatever offsets a file holds. This is
the one place that calls them: it turns each way in which they fail on a damaged file into a
`ParserError`, checks the length of vectors against the size of the file before anything is
made from them, and limits how much is read in total, so that tables and vectors that lie
over each other cannot make a small file cost much.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tflite

from armpy.errors import ParserError
from armpy.frontends.tflite.source import check_identifier

SCHEMA_VERSION = 3

MAX_TEXT_BYTES = 65536
"""Longest name in a file; names get into messages, and one may serve many tensors."""

_DAMAGE = (struct.error, IndexError, TypeError, ValueError, OverflowError)
"""What the generated classes raise when an offset leads nowhere."""

_OFFSET_BYTES = 4
_TABLE_BYTES = 8
_READS_PER_BYTE = 8
_FREE_READS_BYTES = 65536

# A table without fields at byte 4, behind its field list: every field has its default.
_NO_FIELDS = struct.pack("<HHi", 4, 4, 4)

_Choice = TypeVar("_Choice")


class Ledger:
    """How much of a file may still be read, so that no file is read many times over.

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


class Table:
    """One table of a file; its fields are named as in the generated classes.

    Parameters
    ----------
    generated : object
        Instance of a class of the `tflite` package.
    ledger : Ledger
    where : str
        The thing that the table describes, for messages.
    """

    __slots__ = ("_generated", "_ledger", "where")

    # Any: the tflite package has no types; nothing of it leaves this class
    def __init__(self, generated: Any, ledger: Ledger, where: str) -> None:
        self._generated = generated
        self._ledger = ledger
        self.where = where

    def integer(self, field: str) -> int:
        """An integer field."""
        return int(self._call(field))

    def flag(self, field: str) -> bool:
        """A boolean field."""
        return bool(self._call(field))

    def real(self, field: str) -> float:
        """A finite number.

        Raises
        ------
        ParserError
            If it is NaN or infinite.
        """
        value = float(self._call(field))
        if not math.isfinite(value):
            raise self.error(f"the field {field} is not a finite number", actual=repr(value))
        return value

    def choice(self, field: str, choices: Mapping[int, _Choice], kind: str) -> _Choice:
        """An enumerator, looked up in a table.

        Parameters
        ----------
        choices : mapping of int to object
            What each supported enumerator stands for.
        kind : str
            Name of the enumeration in the schema, for messages.
        """
        number = self.integer(field)
        if number not in choices:
            names = enumerators(kind)
            raise self.error(
                f"{field} is not supported",
                expected=" or ".join(names.get(n, str(n)) for n in choices),
                actual=names.get(number, str(number)),
            )
        return choices[number]

    def text(self, field: str) -> str:
        """A string; empty if the file leaves it out. Bytes that are no UTF-8 are replaced."""
        raw = self._call(field) or b""
        self._ledger.charge(len(raw))
        if len(raw) > MAX_TEXT_BYTES:
            raise self.error(
                f"the file is damaged: {field} is too long",
                expected=f"at most {MAX_TEXT_BYTES} bytes",
                actual=str(len(raw)),
            )
        return bytes(raw).decode("utf-8", "replace")

    def leaves_out(self, field: str) -> bool:
        """Whether the file does not hold a vector at all, not even an empty one."""
        return bool(self._call(f"{field}IsNone"))

    def vector(self, field: str) -> npt.NDArray[Any]:  # Any: element types differ by field
        """A view of a vector of numbers, without a copy; empty if the file leaves it out."""
        length = self._call(f"{field}Length")
        if not length:
            return _EMPTY
        self._check_length(field, length)
        view: npt.NDArray[Any] = self._call(f"{field}AsNumpy")  # Any: as above
        return view

    def numbers(self, field: str) -> list[Any]:  # Any: int or float, by field
        """The elements of a vector of numbers."""
        view = self.vector(field)
        self._ledger.charge(view.nbytes)
        elements: list[Any] = view.tolist()  # Any: as above
        return elements

    def table(self, field: str) -> Table | None:
        """A table inside this one; None if the file leaves it out."""
        generated = self._call(field)
        if generated is None:
            return None
        self._ledger.charge(_TABLE_BYTES)
        return Table(generated, self._ledger, self.where)

    def tables(self, field: str, kind: str) -> Tables:
        """A vector of tables.

        Parameters
        ----------
        kind : str
            What each table describes, for messages: ``tensor``.
        """
        length = self._call(f"{field}Length")
        self._check_length(field, length * _OFFSET_BYTES)
        return Tables(self, field, kind, length)

    def item(self, field: str, index: int, where: str) -> Table:
        """One table of a vector of tables, whose length has been checked."""
        self._ledger.charge(_TABLE_BYTES)
        return Table(self._call(field, index), self._ledger, where)

    def union(self, field: str, name: str) -> Table:
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
        stored = self.integer(f"{field}Type")
        inner = self._call(field) if stored else None
        generated = getattr(tflite, name)()
        if inner is None:
            generated.Init(_NO_FIELDS, _OFFSET_BYTES)
            return Table(generated, self._ledger, self.where)
        names = enumerators(field)
        if names.get(stored) != name:
            actual = names.get(stored, str(stored))
            raise self.error("the options are of another operator", expected=name, actual=actual)
        self._checked(generated.Init, field, inner.Bytes, inner.Pos)
        return Table(generated, self._ledger, self.where)

    def error(self, failed: str, *, expected: str = "", actual: str = "") -> ParserError:
        """An error about what this table describes."""
        return ParserError(failed, where=self.where, expected=expected, actual=actual)

    def charge(self, num_bytes: int) -> None:
        """Count bytes that are about to be read or copied, see `Ledger.charge`."""
        self._ledger.charge(num_bytes)

    def _check_length(self, field: str, num_bytes: int) -> None:
        """Check that a vector is no longer than the file."""
        if num_bytes > self._ledger.size_bytes:
            raise self.error(
                f"the file is damaged: {field} is longer than the file",
                expected=f"at most {self._ledger.size_bytes} bytes",
                actual=f"{num_bytes}",
            )

    def _call(self, accessor: str, *args: int) -> Any:  # Any: what the generated classes return
        """Call a generated accessor."""
        return self._checked(getattr(self._generated, accessor), accessor, *args)

    # Any: as above
    def _checked(self, function: Callable[..., Any], what: str, *args: object) -> Any:
        """Call what may follow an offset that leads nowhere."""
        try:
            return function(*args)
        except _DAMAGE as error:
            raise self.error(f"the file is damaged: {what} lies outside it") from error


class Tables:
    """A vector of tables, each of which is read when it is asked for."""

    __slots__ = ("_field", "_kind", "_length", "_parent")

    def __init__(self, parent: Table, field: str, kind: str, length: int) -> None:
        self._parent = parent
        self._field = field
        self._kind = kind
        self._length = length

    def __getitem__(self, index: int) -> Table:
        where = f"{self._kind} {index}"
        if not 0 <= index < self._length:
            raise self._parent.error(
                f"there is no {where}",
                expected=f"an index below {self._length}",
                actual=str(index),
            )
        return self._parent.item(self._field, index, where)

    def __iter__(self) -> Iterator[Table]:
        return (self[index] for index in range(self._length))


def read_model(data: memoryview) -> Table:
    """The root table of a .tflite file.

    Raises
    ------
    ParserError
        If the bytes are no .tflite file of schema version 3.
    """
    check_identifier(data)
    root: Any = tflite.Model  # Any: as in Table
    model = Table(root.GetRootAs(data, 0), Ledger(len(data)), "")
    version = model.integer("Version")
    if version != SCHEMA_VERSION:
        raise ParserError(
            "the schema version is not supported",
            expected=str(SCHEMA_VERSION),
            actual=str(version),
        )
    return model


@cache
def enumerators(kind: str) -> dict[int, str]:
    """Names of the enumerators of one of the schema's enumerations, by number."""
    # From Python 3.13 on, a class also has the number of its first line among its members.
    members = vars(getattr(tflite, kind)).items()
    return {n: name for name, n in members if isinstance(n, int) and not name.startswith("_")}


_EMPTY: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
