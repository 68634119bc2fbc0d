"""Reads calls: what `armpy_numba_acc.machine.call` has records for, in code that Numba compiles."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeVar

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.values import F32, I64, Code
from armpy_numba_acc.machine.call import Call, Pointer, word_fields

CallT = TypeVar("CallT", bound=Call)

_NUMBERS = {"Pointer": types.int64, "int": types.int64, "float": types.float32}
_NUMBERS["tuple[float, ...]"] = types.int64


def reader(kind: type[CallT]) -> Callable[[Pointer], CallT]:
    """What reads a kernel's call, for code that Numba compiles.

    Parameters
    ----------
    kind : type
        The record, or one that it is derived from: its fields come first.

    Returns
    -------
    callable
        Takes the address of the words. What it gives has the record's fields, but for its
        `parameters`: addresses and integers of 64 bits, float32, and for ``tuple[float, ...]`` the
        address of the first one, each in 8 bytes.
    """
    fields = word_fields(kind)
    values = namedtuple(kind.__name__, [field.name for field in fields])  # type: ignore[misc]
    result = types.NamedTuple([_NUMBERS[str(field.type)] for field in fields], values)

    def read(typingctx: Any, args: Any) -> Any:  # Any: Numba has no types
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            place, words = Code(builder).of(given[0]), []
            for number, field in enumerate(fields):
                if field.type == "tuple[float, ...]":
                    words.append(place + 8 * number)
                elif field.type == "float":
                    words.append(place.load(F32, 2 * number))
                else:
                    words.append(place.load(I64, number))
            return context.make_tuple(builder, result, [word.value for word in words])

        return result(types.int64), generate

    read.__name__ = f"read_{kind.__name__}"
    made: Callable[[Pointer], CallT] = intrinsic(read)
    return made
