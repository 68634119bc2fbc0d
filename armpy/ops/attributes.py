"""Checks attributes of an operation against the types that its definition declares."""

from __future__ import annotations

import re
import types
import typing
from numbers import Integral, Real
from typing import Any

from armpy.core.field_types import field_types
from armpy.core.symbolic import Size
from armpy.errors import LayerValidationError
from armpy.ops.operation import Operation

_LARGEST = 2**63


def check_attributes(operation: Operation) -> None:
    """Check every attribute's form.

    Raises
    ------
    LayerValidationError
        If an attribute is not of its declared type. Integers are taken for floats, and
        NumPy's numbers for Python's; truth values are not taken for numbers.
    """
    for name, declared in field_types(type(operation)).items():
        value = getattr(operation, name)
        if not _fits(value, declared):
            raise LayerValidationError(
                f"the attribute '{name}' has the wrong form",
                where=operation.name,
                expected=_text(declared),
                actual=repr(value),
            )


def _fits(value: object, declared: Any) -> bool:  # Any: as above
    if isinstance(value, Size):
        return declared is int
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if declared is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, argument) for argument in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if declared is int:
        is_number = isinstance(value, Integral) and not isinstance(value, bool)
        return is_number and -_LARGEST <= int(typing.cast(int, value)) < _LARGEST
    if declared is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    return isinstance(value, declared if isinstance(declared, type) else object)


def _text(declared: Any) -> str:  # Any: as above
    """A declared type for a message."""
    if isinstance(declared, type) and typing.get_origin(declared) is None:
        return declared.__name__
    return re.sub(r"\barmpy\.ops\.(\w+\.)?|\btyping\.", "", str(declared))
