"""Calls of kernels as records, which those who emit them and the kernels read by the same names.

Notes
-----
A call is a row of 64-bit words in memory, one for each field of its record. Lowerings fill records
with buffers and numbers; kernels get them back by `armpy_numba_acc.llvm.calls.reader`, whose
addresses are integers. The records themselves are in `armpy_numba_acc.machine.calls`.
"""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any, ClassVar, Self, TypeAlias

from armpy.core.symbolic import fixed
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.layout import MemoryLayout
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.machine.work import WorkKind

Pointer: TypeAlias = Buffer | Address | int
"""An address: of a buffer while a program is made, an integer while it runs; 0 for none."""

Word: TypeAlias = Buffer | Address | int | float
"""What a field becomes a word of; a float is kept as the bits of a float32."""


class Call(MemoryLayout):
    """One call of the kernel that is named like the record: ``MoveRuns`` of ``move_runs``.

    A record is a frozen slotted dataclass whose fields are of type `Pointer`, ``int``, ``float``,
    or of a record that several kernels share, whose words stand in the field's place. The last one
    may be ``tuple[float, ...]``, which becomes as many words as it has numbers.
    """

    __slots__ = ()

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    # Fields that the kernel is made for; they are not words.
    parameters: ClassVar[tuple[str, ...]] = ()
    # Field with the kernel's name, where several kernels have the same record; it is not a word.
    named_by: ClassVar[str] = ""
    work: ClassVar[WorkKind] = WorkKind.FLOATS

    @classmethod
    def made_for(cls, *values: int | str) -> Self:
        """A record of which the parameters are known only, for those who make the kernel."""
        known = dict(zip(cls.parameters, values, strict=True))
        return cls(**{field.name: known.get(field.name, 0) for field in dataclasses.fields(cls)})

    @classmethod
    def word_names(cls) -> tuple[str, ...]:
        """Names of the fields that are words, or records of words, in order."""
        others = (*cls.parameters, cls.named_by)
        return tuple([f.name for f in dataclasses.fields(cls) if f.name not in others])

    @property
    def kernel(self) -> Kernel:
        """The kernel, made for the record's parameters."""
        # A kernel that is made for a size is made for that one alone.
        made_for = tuple(fixed(getattr(self, name)) for name in self.parameters)
        record = type(self)
        name = getattr(self, self.named_by) if self.named_by else _name_of(record.__name__)
        return Kernel(name, made_for)

    @property
    def words(self) -> tuple[Word, ...]:
        """The call's words in order."""
        result: list[Word] = []
        for name in self.word_names():
            value = getattr(self, name)
            if isinstance(value, Call):
                result += value.words
            else:
                result += value if isinstance(value, tuple) else (value,)
        return tuple(result)


@cache
def _name_of(record: str) -> str:
    """Name of the module of a record's kernel."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", record).lower()
