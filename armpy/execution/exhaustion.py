"""Errors raised to the application where its process has no memory left."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from armpy.errors import ArmpyError, MemoryLimitError

P = ParamSpec("P")
T = TypeVar("T")


def without_memory(error: BaseException) -> MemoryLimitError:
    """The error for a MemoryError that nobody in armpy has made another of; it is the cause."""
    if isinstance(error, MemoryLimitError):
        return error
    made = MemoryLimitError("the process has no memory left for this", actual=str(error))
    made.__cause__ = error
    return made


def is_without_memory(error: BaseException) -> bool:
    """Whether something is Python's or NumPy's own MemoryError."""
    # armpy's own is a MemoryError, too, and says more.
    return isinstance(error, MemoryError) and not isinstance(error, ArmpyError)


def tells_of_memory(function: Callable[P, T]) -> Callable[P, T]:
    """A function that raises armpy's error for MemoryError, where a call more does not count."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    return call
