"""Errors for objects that cannot be used as an input's array, with the fix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.tensor import Shape, TensorInfo, format_shape

if TYPE_CHECKING:
    from armpy.ops.operation import Array

_NUMBERS = "biufc"
"""Kinds of dtypes that are numbers."""


def no_array(name: str, info: TensorInfo, given: object) -> InvalidArgumentError:
    """The error for an object that is not an array of numbers, nor can be made one."""
    actual, fix = _found(given)
    return InvalidArgumentError(
        "this is not an array of numbers",
        where=f"input '{name}'",
        expected=f"an array of {info.data_type.dtype} {format_shape(info.shape)}",
        actual=actual,
        fix=fix,
    )


def _found(argument: object) -> tuple[str, str]:
    """Describe the argument in words, and the fix."""
    if argument is None:
        return "None", "Pass an array of this type and shape"
    if isinstance(argument, int):
        return f"the number {argument}", "It is larger than any type of NumPy's holds"
    if isinstance(argument, (str, os.PathLike)):
        text = f"the {'text' if isinstance(argument, str) else 'path'} {str(argument)!r:.60}"
        return text, "If it is a file, read it first: np.load(path), or Pillow for pictures"
    if isinstance(argument, Mapping):
        keys = ", ".join(map(repr, [*argument][:3]))
        return f"{_a_kind(argument)} with {keys or 'no keys'}", "Give the array that is in it"
    if isinstance(argument, (list, tuple)):
        return _in_sequence(argument)
    if isinstance(argument, Set):
        return _a_kind(argument), "It has no order: make it a list"
    if isinstance(argument, np.ndarray):
        return f"an array of {argument.dtype} {format_shape(argument.shape)}", _array_fix(argument)
    if callable(getattr(argument, "read", None)):
        return f"an open file ({_kind(argument)})", "Read it first: np.load(file)"
    # Near the end, as nearly all of the above are iterable, too.
    if isinstance(argument, Iterable):
        return _a_kind(argument), "Make it an array first: np.array(list(...), dtype)"
    if isinstance(argument, type):
        return f"the class {argument.__qualname__}", "Give it an instance"
    return _a_kind(argument), "Make it an array first: np.asarray(..., dtype)"


def _kind(argument: object) -> str:
    """A type's name, with its module where that is not Python's own."""
    kind = type(argument)
    own = kind.__module__ in ("builtins", "collections")
    return kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}"


def _a_kind(argument: object) -> str:
    """A type's name with its article."""
    kind = _kind(argument)
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _array_fix(array: Array) -> str:
    """Return the fix for an array that does not hold numbers."""
    if array.dtype.names:
        return f"Take one of its fields: array[{array.dtype.names[0]!r}]"
    if array.dtype.kind == "O":
        return "Its elements are Python objects: convert them with array.astype(dtype)"
    if array.dtype.kind in "US":
        return "Its elements are texts: convert them with array.astype(dtype), if they are numbers"
    return "Make numbers of its elements first"


def _in_sequence(sequence: list[Any] | tuple[Any, ...]) -> tuple[str, str]:  # Any: of the caller
    """Describe the error in nested lists: the first element that is not a number, or lengths."""
    kind = type(sequence).__name__
    place, element = _first_odd(sequence)
    if place is None:
        return f"a {kind} whose rows differ in length", "Give all rows the same length"
    actual, _ = _found(element) if element is not None else ("None", "")
    where = "".join(f"[{index}]" for index in place)
    return f"a {kind} with {actual} at {where}", "Give numbers alone"


def _first_odd(argument: object) -> tuple[tuple[int, ...] | None, object]:
    """Place and value of the first element that is not a number; None if all are."""
    if isinstance(argument, (list, tuple)):
        for index, element in enumerate(argument):
            place, odd = _first_odd(element)
            if place is not None:
                return (index, *place), odd
        return None, None
    try:
        is_number = np.asarray(argument).dtype.kind in _NUMBERS
    except Exception:  # noqa: BLE001 - of another library
        is_number = False
    return (None, None) if is_number else ((), argument)


def shape_fix(name: str, wanted: Shape | None, given: tuple[int, ...]) -> str:
    """Return the fix for an array of another shape than an input's; empty if unknown."""
    if wanted is None:
        return ""
    if len(given) == len(wanted) - 1 and _agree(wanted[1:], given) and wanted[0] in (1, None):
        return "Give it a batch dimension: array[None]"
    if len(given) == len(wanted) + 1 and given[0] == 1 and _agree(wanted, given[1:]):
        return "Leave the batch dimension out: array[0]"
    if len(given) == len(wanted) == 4:
        n, a, b, c = given
        if _agree(wanted, (n, b, c, a)):
            return "The channels go last: array.transpose(0, 2, 3, 1)"
        if _agree(wanted, (n, c, a, b)):
            return "The channels go first: array.transpose(0, 3, 1, 2)"
    if len(given) == len(wanted) and None not in wanted and _agree(wanted[1:], given[1:]):
        return f"Make a model for batch size {given[0]}: model.reshape({{{name!r}: {given}}})"
    return ""


def _agree(wanted: Shape, actual: tuple[int, ...]) -> bool:
    """Return whether an array's shape is one that is wanted."""
    pairs = zip(wanted, actual, strict=False)
    return len(wanted) == len(actual) and all(w is None or w == g for w, g in pairs)
