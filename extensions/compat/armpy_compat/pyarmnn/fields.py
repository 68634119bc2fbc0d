"""Fields of PyArmNN's structures: checked and converted as SWIG does for members of C++."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class ScalarField(Generic[T]):
    """A member that holds one value.

    Parameters
    ----------
    default
        Value in a new structure.
    c_type : str
        Named by the errors.
    convert : callable
        Makes the value of what is assigned; raises TypeError or OverflowError.
    """

    def __init__(self, default: T, c_type: str, convert: Callable[[object], T]) -> None:
        self._default = default
        self._c_type = c_type
        self._convert = convert

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> T:
        value: T = instance.__dict__.get(self._name, self._default)
        return value

    def __set__(self, instance: object, value: object) -> None:
        try:
            instance.__dict__[self._name] = self._convert(value)
        except (TypeError, OverflowError) as error:
            method = f"{type(instance).__name__}_{self._name}_set"
            raise type(error)(
                f"in method '{method}', argument 2 of type '{self._c_type}'"
            ) from error


class ListField(Generic[T]):
    """A member that holds a vector; every reading makes a new list.

    Parameters
    ----------
    default : tuple
        Elements in a new structure.
    c_type : str
        Type of an element, as compilers encode it; named by the errors.
    convert : callable
        Makes an element of what is assigned; raises TypeError or OverflowError.
    """

    def __init__(self, default: tuple[T, ...], c_type: str, convert: Callable[[object], T]) -> None:
        self._default = default
        self._c_type = c_type
        self._convert = convert

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> list[T]:
        return list(instance.__dict__.get(self._name, self._default))

    def __set__(self, instance: object, value: object) -> None:
        if not hasattr(value, "__getitem__") or not hasattr(value, "__len__"):
            raise TypeError(
                "Argument value object does not provide sequence protocol, implement"
                " __getitem__() method."
            )
        instance.__dict__[self._name] = tuple(self._element(value[i]) for i in range(len(value)))

    def _element(self, value: object) -> T:
        try:
            return self._convert(value)
        except (TypeError, OverflowError) as error:
            raise TypeError(
                f"Failed to convert python input value {value!r} of type"
                f" '{type(value).__name__}' to C type '{self._c_type}'"
            ) from error


class ObjectField(Generic[T]):
    """A member that holds a copy of an object.

    Parameters
    ----------
    kind : type
    c_type : str
        Named by the errors.
    copy : callable
        Makes the object of a new structure, or a copy of the one given.
    """

    def __init__(self, kind: type[T], c_type: str, copy: Callable[[T | None], T]) -> None:
        self._kind = kind
        self._c_type = c_type
        self._copy = copy

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> T:
        if self._name not in instance.__dict__:
            instance.__dict__[self._name] = self._copy(None)
        value: T = instance.__dict__[self._name]
        return value

    def __set__(self, instance: object, value: object) -> None:
        if not isinstance(value, self._kind):
            method = f"{type(instance).__name__}_{self._name}_set"
            raise TypeError(f"in method '{method}', argument 2 of type '{self._c_type}'")
        instance.__dict__[self._name] = self._copy(value)


def as_signed(value: object) -> int:
    """An integer of 32 bits; OverflowError beyond."""
    return _in_range(value, -(2**31), 2**31 - 1)


def as_unsigned(value: object) -> int:
    """An integer of 32 bits without a sign; OverflowError beyond."""
    return _in_range(value, 0, 2**32 - 1)


def _in_range(value: object, lowest: int, highest: int) -> int:
    number = operator.index(value)  # type: ignore[arg-type]  # others are a TypeError
    if not lowest <= number <= highest:
        raise OverflowError(f"{number} does not fit")
    return number


def as_float32(value: object) -> float:
    """A number rounded to float32; OverflowError beyond its range, TypeError for what is none."""
    if isinstance(value, str | bytes):
        raise TypeError("text is not a number")
    try:
        (number,) = struct.unpack("<f", struct.pack("<f", value))
    except struct.error as error:  # not a TypeError
        raise TypeError(f"{type(value).__name__} is not a number") from error
    rounded: float = number
    return rounded


def as_bool(value: object) -> bool:
    """A bool itself; numbers are a TypeError."""
    if not isinstance(value, bool):
        raise TypeError("not a bool")
    return value


def as_text(value: object) -> str:
    """A str itself."""
    if not isinstance(value, str):
        raise TypeError("not a str")
    return value


def as_pair(value: object) -> tuple[int, int]:
    """A tuple of two integers without a sign."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError("not a pair")
    return as_unsigned(value[0]), as_unsigned(value[1])


def unsigned(default: int = 0) -> ScalarField[int]:
    """A member of type ``uint32_t``."""
    return ScalarField(default, "uint32_t", as_unsigned)


def signed(default: int = 0) -> ScalarField[int]:
    """A member of type ``int32_t``."""
    return ScalarField(default, "int32_t", as_signed)


def real(default: float = 0.0) -> ScalarField[float]:
    """A member of type ``float``."""
    return ScalarField(as_float32(default), "float", as_float32)


def flag(default: bool = False) -> ScalarField[bool]:
    """A member of type ``bool``."""
    return ScalarField(default, "bool", as_bool)


def text(default: str = "") -> ScalarField[str]:
    """A member of type ``std::string``."""
    return ScalarField(default, "std::string const &", as_text)


def choice(kind: str, default: int) -> ScalarField[int]:
    """A member of an enumeration: any integer, as in C++."""
    return ScalarField(default, f"armnn::{kind}", as_signed)


def unsigneds(*default: int) -> ListField[int]:
    """A member of type ``std::vector<unsigned int>``."""
    return ListField(default, "j", as_unsigned)


def signeds(*default: int) -> ListField[int]:
    """A member of type ``std::vector<int>``."""
    return ListField(default, "i", as_signed)


def pairs(*default: tuple[int, int]) -> ListField[tuple[int, int]]:
    """A member of type ``std::vector<std::pair<unsigned int, unsigned int>>``."""
    return ListField(default, "St4pairIjjE", as_pair)


def checked_arguments(
    args: Sequence[object], names: Sequence[str], least: int
) -> dict[str, object]:
    """Arguments of a constructor by the members that they are for; TypeError for a wrong number."""
    if args and not least <= len(args) <= len(names):
        raise TypeError(f"{least} to {len(names)} arguments")
    return dict(zip(names, args, strict=False))
