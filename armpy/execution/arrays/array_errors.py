"""Array errors: why what a caller gave for an input is no array for it, and what to do."""

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
    """The error for what is not an array of numbers, nor can be made one."""
    found, fix = _found(given)
    return InvalidArgumentError(
        "this is not an array of numbers",
        where=f"input '{name}'",
        expected=f"{info.data_type.dtype}{format_shape(info.shape)}",
        actual=found,
        fix=fix,
    )


def _found(given: object) -> tuple[str, str]:
    """Describe the argument in words, and the fix."""
    if given is None:
        return "None", "Give it an array"
    if isinstance(given, int):
        return f"the number {given}", "It is larger than any type of NumPy's holds"
    if isinstance(given, (str, os.PathLike)):
        text = f"the {'text' if isinstance(given, str) else 'path'} {str(given)!r:.60}"
        return text, "If it is a file, read it first: np.load(path), or Pillow for pictures"
    if isinstance(given, Mapping):
        keys = ", ".join(map(repr, [*given][:3]))
        return f"{_a_kind(given)} with {keys or 'no keys'}", "Give the array that is in it"
    if isinstance(given, (list, tuple)):
        return _in_sequence(given)
    if isinstance(given, Set):
        return _a_kind(given), "It has no order: make it a list"
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype}{format_shape(given.shape)}", _array_fix(given)
    if callable(getattr(given, "read", None)):
        return f"an open file ({_kind(given)})", "Read it first: np.load(file)"
    # Near the end, as nearly all of the above are iterable, too.
    if isinstance(given, Iterable):
        return _a_kind(given), "Make it an array first: np.array(list(...), dtype)"
    if isinstance(given, type):
        return f"the class {given.__qualname__}", "Give it an instance"
    return _a_kind(given), "Make it an array first: np.asarray(..., dtype)"


def _kind(given: object) -> str:
    """A type's name, with its module where that is not Python's own."""
    kind = type(given)
    own = kind.__module__ in ("builtins", "collections")
    return kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}"


def _a_kind(given: object) -> str:
    """A type's name with its article."""
    kind = _kind(given)
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _array_fix(given: Array) -> str:
    """Return the fix for an array that does not hold numbers."""
    if given.dtype.names:
        return f"Take one of its fields: array[{given.dtype.names[0]!r}]"
    if given.dtype.kind == "O":
        return "Its elements are Python objects: convert them with array.astype(dtype)"
    if given.dtype.kind in "US":
        return "Its elements are texts: convert them with array.astype(dtype), if they are numbers"
    return "Make numbers of its elements first"


def _in_sequence(given: list[Any] | tuple[Any, ...]) -> tuple[str, str]:  # Any: of the caller
    """Describe the error in nested lists: the first element that is not a number, or lengths."""
    kind = type(given).__name__
    place, element = _first_odd(given)
    if place is None:
        return f"a {kind} whose rows differ in length", "Give all rows the same length"
    found, _ = _found(element) if element is not None else ("None", "")
    where = "".join(f"[{index}]" for index in place)
    return f"a {kind} with {found} at {where}", "Give numbers alone"


def _first_odd(given: object) -> tuple[tuple[int, ...] | None, object]:
    """Place and value of the first element that is not a number; None if all are."""
    if isinstance(given, (list, tuple)):
        for index, element in enumerate(given):
            place, found = _first_odd(element)
            if place is not None:
                return (index, *place), found
        return None, None
    try:
        is_number = np.asarray(given).dtype.kind in _NUMBERS
    except Exception:  # noqa: BLE001 - of another library
        is_number = False
    return (None, None) if is_number else ((), given)


def shape_fix(wanted: Shape | None, given: tuple[int, ...]) -> str:
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
        return "The file has fixed the batch: Model.reshape gives a model for another one"
    return ""


def _agree(wanted: Shape, given: tuple[int, ...]) -> bool:
    """Return whether an array's shape is one that is wanted."""
    pairs = zip(wanted, given, strict=False)
    return len(wanted) == len(given) and all(w is None or w == g for w, g in pairs)
