"""Attributes of option objects, with defaults and checked types."""

from __future__ import annotations

import operator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


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
    """A value of the type; numbers are taken for booleans and enumerations."""
    if kind is str or isinstance(value, str):
        if kind is not str or not isinstance(value, str):
            raise TypeError(kind.__name__)
        return value
    if kind is bool or issubclass(kind, Enum):
        return kind(operator.index(value))  # type: ignore[call-arg]  # both take a number
    return operator.index(value)
