"""Strings of tensors, which LiteRT's callers get as bytes, and armpy's as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Objects = npt.NDArray[np.object_]

_ERRORS = "surrogateescape"


def to_strings(array: npt.NDArray[Any]) -> Objects:  # Any: of every type
    """Text for armpy of strings or bytes.

    Raises
    ------
    ValueError
        If an element is neither.
    """
    if array.dtype.kind == "S" and not array.ndim:  # with the zeros at its end, as LiteRT has it
        return np.array(_text(array.tobytes()), object)
    strings = np.empty(array.size, object)
    strings[:] = [_text(element) for element in array.reshape(-1).tolist()]
    return strings.reshape(array.shape)


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", _ERRORS)
    if not isinstance(element, str):
        kind = type(element).__name__
        raise ValueError(f"Cannot use {kind} for a string tensor.")  # noqa: TRY004 - as LiteRT
    return element


def to_bytes(strings: Objects) -> Objects:
    """Bytes for LiteRT's callers of armpy's strings."""
    array = np.empty(strings.size, object)
    array[:] = [str(element).encode("utf-8", _ERRORS) for element in strings.reshape(-1)]
    return array.reshape(strings.shape)
