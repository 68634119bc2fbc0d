"""Attributes of option objects, with defaults and checked types."""

from __future__ import annotations

import operator
from enum import Enum
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

T = TypeVar("T")

_LEAST, _LARGEST = -(2**31), 2**31 - 1
"""Range of attributes that are integers."""


_LONGEST_KEY = 1024


class HasValues(Protocol):
    """An object that keeps its attributes' values."""

    values_by_name: dict[str, Any]  # Any: a value of each attribute's own type


class Attribute(Generic[T]):
    """An attribute whose values have the type of the default.

    Parameters
    ----------
    default : bool, int, str or Enum
    """

    def __init__(self, default: T) -> None:
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, options: HasValues, owner: type | None = None) -> T:
        value: T = options.values_by_name.get(self._name, self._default)
        return value

    def __set__(self, options: HasValues, value: T) -> None:
        kind = type(self._default)
        try:
            options.values_by_name[self._name] = _converted(value, kind)
        except (TypeError, ValueError) as error:
            where = f"{type(options).__name__}.{self._name}"
            raise TypeError(f"{where}: expected {kind.__name__}; got {value!r}") from error


def _converted(value: Any, kind: type[T]) -> Any:  # Any: whatever the caller assigns
    """A value of the type; booleans may be numbers or None, and enumerations their numbers."""
    if kind is str or isinstance(value, str):
        if kind is not str or not isinstance(value, str):
            raise TypeError(kind.__name__)
        return value
    if kind is bool and (value is None or isinstance(value, Real | np.bool_)):
        return bool(value)
    number = operator.index(value)
    if not _LEAST <= number <= _LARGEST:
        raise ValueError(number)
    return kind(number) if issubclass(kind, Enum) else number


def check_key(key: str) -> None:
    """Check the key of an entry of a configuration.

    Raises
    ------
    RuntimeError
        If it is empty or longer than 1024.
    """
    if not 0 < len(key) <= _LONGEST_KEY:
        raise RuntimeError(f"Config key is empty or longer than maximum length {_LONGEST_KEY}")
