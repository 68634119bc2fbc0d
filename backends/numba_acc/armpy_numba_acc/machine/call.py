"""Calls of kernels as records, which those who emit them and the kernels read by the same names.

Notes
-----
A call is a row of 64-bit words in memory, one for each field of its record. Lowerings fill records
with buffers and numbers; kernels get them back by `armpy_numba_acc.llvm.calls.reader`, whose
addresses are integers. The records themselves are in `armpy_numba_acc.machine.calls`.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self, TypeAlias

from armpy.sizes import fixed
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Address, Buffer

Pointer: TypeAlias = Buffer | Address | int
"""An address: of a buffer while a program is made, an integer while it runs; 0 for none."""

Word: TypeAlias = Buffer | Address | int | float
"""What a field becomes a word of; a float is kept as the bits of a float32."""


class Work(enum.StrEnum):
    """What a kernel's time goes into, for those who estimate it."""

    FLOATS = "floats"
    """Arithmetic on float32, or memory."""

    BYTES = "bytes"
    """Products of bytes, by as few instructions as the processor needs."""

    PAIRS = "pairs"
    """Products of 16-bit elements, two by one instruction."""

    WINDOWS = "windows"
    """Products of float32 that wait for elements of an image."""

    BYTE_WINDOWS = "byte windows"
    """The same of bytes."""

    WEIGHTS = "weights"
    """float32 weights that are read once."""

    BYTE_WEIGHTS = "byte weights"
    """The same of bytes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the kernel that is named like the record: ``MoveRuns`` of ``move_runs``.

    Notes
    -----
    A record is a frozen dataclass whose fields are of type `Pointer`, ``int``, ``float``, or of a
    record that several kernels share, whose words stand in the field's place. The last one may be
    ``tuple[float, ...]``, which becomes as many words as it has numbers. Fields that `parameters`
    names are no words: the kernel is made for them.
    """

    parameters: ClassVar[tuple[str, ...]] = ()
    work: ClassVar[Work] = Work.FLOATS

    @classmethod
    def made_for(cls, *values: int | str) -> Self:
        """A record of which the parameters are known only, for those who make the kernel."""
        given = dict(zip(cls.parameters, values, strict=True))
        return cls(**{each.name: given.get(each.name, 0) for each in dataclasses.fields(cls)})

    @property
    def kernel(self) -> Kernel:
        """The kernel, made for the record's parameters."""
        # A kernel that is made for a size is made for that one alone.
        made_for = tuple(fixed(getattr(self, name)) for name in self.parameters)
        return Kernel(_name_of(type(self).__name__), made_for)

    @property
    def words(self) -> tuple[Word, ...]:
        """The call's words in order."""
        result: list[Word] = []
        for field in word_fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Call):
                result += value.words
            else:
                result += value if isinstance(value, tuple) else (value,)
        return tuple(result)


def word_fields(record: Call | type[Call]) -> tuple[dataclasses.Field[Any], ...]:
    """Fields of a record that are words, or records of words, in order (Any: of every type)."""
    return tuple(f for f in dataclasses.fields(record) if f.name not in record.parameters)


@cache
def _name_of(record: str) -> str:
    """Name of the module of a record's kernel."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", record).lower()
