"""Reads calls: what `armpy_numba_acc.machine.call` has records for, in generated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from armpy_numba_acc.llvm.primitives import WORD, WrittenFunction
from armpy_numba_acc.llvm.values import F32, I64, Code, CodeValue
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.layout import MemoryLayout

LayoutT = TypeVar("LayoutT", bound=MemoryLayout)


class CallFields:
    """A call's fields as values, each loaded when asked for: ``CallFields(Copy, args).size``.

    Records within it are `CallFields` again; ``tuple[float, ...]`` is the address of the first one.

    Parameters
    ----------
    kind : type
        The record.
    args : CodeValue
        Address of the words.
    """

    def __init__(self, kind: type[MemoryLayout], args: CodeValue) -> None:
        self._places: dict[str, tuple[Any, CodeValue]] = {}  # Any: a type
        for name, hint in field_types(kind).items():
            self._places[name] = hint, args
            args = args + 8 * _num_words(hint)

    def __getattr__(self, name: str) -> Any:  # Any: a CodeValue, or CallFields
        if name not in self._places:
            raise AttributeError(f"the call has no {name!r}, but {', '.join(self._places)}")
        hint, place = self._places[name]
        if isinstance(hint, type) and issubclass(hint, MemoryLayout):
            return CallFields(hint, place)
        if hint is float:
            return place.load(F32)
        return place if hint == tuple[float, ...] else place.load(I64)


def reader(kind: type[LayoutT]) -> Callable[[Pointer], LayoutT]:
    """Return the reader of a kernel's call, for code that Numba compiles.

    Parameters
    ----------
    kind
        The record, or the one that it begins with.

    Returns
    -------
    callable
        Takes the address of the words. Its result has the record's fields, but for its
        `parameters`: addresses and integers of 64 bits, float32, records within it, and for
        ``tuple[float, ...]`` the address of the first one, each in 8 bytes.
    """

    def read(code: Code, args: CodeValue) -> CallFields:
        return CallFields(kind, args)

    stand_in: Any = WrittenFunction(read, kind, (WORD,))  # Any: to callers it is a function
    return stand_in  # type: ignore[no-any-return]


def field_types(kind: type[MemoryLayout]) -> dict[str, Any]:  # Any: a type
    """Types of a record's words."""
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.word_names()}


def _num_words(hint: Any) -> int:  # Any: a type
    """CallFields that a field takes."""
    if isinstance(hint, type) and issubclass(hint, MemoryLayout):
        return sum(map(_num_words, field_types(hint).values()))
    return 1
