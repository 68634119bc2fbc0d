"""Conversion of what a caller passes into arrays of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armpy.core.strings import as_strings, is_text
from armpy.errors import ArmpyError, InvalidArgumentError, MemoryQuotaError
from armpy.ops.operation import located
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.ops.operation import Array

_CHARACTER_BYTES = np.dtype("U1").itemsize


def as_string_array(
    name: str,  # the input's name, for messages
    given: object,  # array_like of str or bytes
    limit_bytes: int,  # the most that their text may take, where it is as wide in each element
) -> Array:
    """Make an array of strings.

    Raises InvalidArgumentError if an element is not a string; MemoryQuotaError if a copy would take
    too much.

    Returns `given` itself if its elements are canonical strings; see `armpy.core.strings`.
    """
    try:
        # Of objects, as NumPy's other types remove zeros from the ends of strings.
        is_plain = isinstance(given, (str, bytes, list, tuple))
        array = np.array(given, object) if is_plain else np.asarray(given)
        if not is_text(array) and array.size:
            raise InvalidArgumentError(
                "the array has the wrong type",
                expected="an array of str or bytes",
                actual=f"{array.dtype} {format_shape(array.shape)}",
                fix="Convert it with array.astype(str)",
            )
        # Elements of `U` and `S` may stand for one another, and become a string each.
        width = array.itemsize // (_CHARACTER_BYTES if array.dtype.kind == "U" else 1)
        if array.size * width > limit_bytes:
            raise MemoryQuotaError(
                "the text of the input needs too much memory",
                expected=f"at most {limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{array.size} elements of {width} bytes",
            )
        return as_strings(array)
    except ArmpyError as error:
        raise located(lambda: f"input '{name}'", error) from error.__cause__
    except Exception as error:  # foreign objects raise any error when they are converted
        raise InvalidArgumentError(
            f"the value cannot be made an array of strings: {error}",
            where=f"input '{name}'",
            actual=type(given).__name__,
        ) from error
