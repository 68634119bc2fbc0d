"""Conversion of strings to numbers and back, as ONNX's Cast defines it."""

from __future__ import annotations

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array

MOST_CHARACTERS = 24
"""Characters of the longest text of a number, a float64."""

_SHOWN_CHARACTERS = 80
_SPECIAL = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}


def as_numbers(strings: Array, dtype: np.dtype[np.generic], where: str) -> Array:
    """The numbers that strings read.

    Parameters
    ----------
    dtype : dtype
        Integers are read exactly, and by way of float64 where a string has a fraction or exponent.
    where
        Location, for the message.

    Raises
    ------
    InvalidArgumentError
        If a string is not a number, or its number does not fit the type.
    """
    is_integer = dtype.kind in "iu"
    numbers = np.empty(strings.shape, object if is_integer else np.float64)
    flat = numbers.reshape(-1)
    for index, text in enumerate(strings.reshape(-1).tolist()):
        try:
            flat[index] = _integer(text, dtype) if is_integer else float(text)
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                "a string is not a number of the type",
                where=where,
                expected=f"a number of {dtype}",
                actual=ascii(text)[:_SHOWN_CHARACTERS],
            ) from error
    return numbers


def _integer(text: str, dtype: np.dtype[np.generic]) -> int:
    try:
        number = int(text)
    except ValueError:
        number = int(float(text))
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # the kind is checked
    if not limits.min <= number <= limits.max:
        raise ValueError("the number does not fit the type")
    return number


def as_texts(numbers: Array) -> list[str]:
    """The shortest string that reads as each number; 0 or 1 for truth values."""
    if numbers.dtype == np.bool_:
        numbers = numbers.astype(np.uint8)
    # NumPy's own scalars, as Python's float would show a float32 with the digits of a float64.
    texts = (str(number) for number in numbers.reshape(-1))
    return [_SPECIAL.get(text, text) for text in texts]
