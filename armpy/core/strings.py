"""Strings as elements of tensors: their canonical form, and their bytes in files.

An element is a ``str``. Model files hold bytes, which need not be UTF-8: those that cannot be
decoded become lone surrogates (``surrogateescape``) and come back as the same bytes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.errors import InvalidArgumentError

Strings = npt.NDArray[np.object_]
"""An array of ``str``."""

Bytes = npt.NDArray[np.uint8]

_ERRORS = "surrogateescape"
_MOST_BYTES = 2**31 - 1
_WORD_BYTES = 4
_MOST_CHARACTERS = 80


def decoded(element: bytes) -> str:
    """The string of some bytes."""
    return element.decode("utf-8", _ERRORS)


def encoded(element: str) -> bytes:
    """The bytes of a canonical string."""
    return element.encode("utf-8", _ERRORS)


def is_text(array: npt.NDArray[Any]) -> bool:  # Any: of every type
    """Return whether an array can hold strings: ``S``, ``U``, ``StringDType`` or objects."""
    return array.dtype.kind in "SUTO"


def as_strings(array: npt.NDArray[Any]) -> Strings:  # Any: of every type
    """Make an array of canonical strings.

    Returns `array` itself if it is canonical.

    Parameters
    ----------
    array : ndarray of str, bytes or objects
        NumPy's types ``S``, ``U`` and ``T`` (``StringDType``), or objects that are ``str`` or
        ``bytes``.

    Raises
    ------
    InvalidArgumentError
        If an element is not a string, or cannot be encoded as UTF-8.
    """
    elements = array.reshape(-1).tolist()
    canonical = [_canonical(element) for element in elements]
    if array.dtype.kind == "O" and array.flags.c_contiguous:
        pairs = zip(elements, canonical, strict=True)
        if all(type(element) is str and element == text for element, text in pairs):
            return array
    strings = np.empty(array.shape, object)
    strings.reshape(-1)[:] = canonical
    return strings


def _canonical(element: object) -> str:
    """The ``str`` of one element; equal bytes give equal strings."""
    if isinstance(element, bytes):
        return decoded(element)
    if not isinstance(element, str):
        raise InvalidArgumentError(
            "an element is not a string",
            expected="str or bytes",
            actual=f"{type(element).__name__} {element!r:.{_MOST_CHARACTERS}}",
        )
    if element.isascii():
        return str(element)
    try:
        return decoded(encoded(element))
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            "an element cannot be encoded as UTF-8",
            actual=ascii(element)[:_MOST_CHARACTERS],
            fix="Replace the surrogates in it",
        ) from error


def packed(
    strings: Strings,  # canonical strings
) -> Bytes:
    """The bytes that files hold for an array of strings.

    TFLite's form, in little-endian int32: the number of strings, the offset of each from the first
    byte, and the offset of the last one's end; then the bytes of all strings.

    Raises
    ------
    InvalidArgumentError
        If the bytes are more than 2 GiB.
    """
    elements = [encoded(element) for element in strings.reshape(-1).tolist()]
    offsets = np.cumsum([_WORD_BYTES * (len(elements) + 2), *map(len, elements)], dtype=np.int64)
    if offsets[-1] > _MOST_BYTES:
        raise InvalidArgumentError(
            "the strings are too large to be written",
            expected=f"at most {_MOST_BYTES} bytes",
            actual=f"{offsets[-1]} bytes",
        )
    head = np.array([len(elements), *offsets], "<i4").tobytes()
    return np.frombuffer(head + b"".join(elements), np.uint8)


def unpacked(
    stored: Bytes,
    count: int,  # expected number of strings
) -> Strings:
    """The strings of `packed` bytes.

    Raises
    ------
    InvalidArgumentError
        If the bytes hold another number of strings, or an offset is outside of the bytes or below
        the previous one.
    """
    actual = int(stored[:_WORD_BYTES].copy().view("<i4")[0]) if stored.size >= _WORD_BYTES else 0
    begin = _WORD_BYTES * (count + 2)
    # The number comes from the tensor's shape, so that no number in the bytes allocates anything.
    if actual != count or stored.size < begin:
        raise InvalidArgumentError(
            "the bytes do not hold the strings of the tensor",
            expected=f"{count} strings and at least {begin} bytes",
            actual=f"{actual} strings in {stored.size} bytes",
        )
    offsets = stored[_WORD_BYTES:begin].copy().view("<i4").astype(np.int64)
    if offsets[0] < begin or offsets[-1] > stored.size or (np.diff(offsets) < 0).any():
        raise InvalidArgumentError(
            "the offsets of strings are not ascending or outside of the bytes",
            expected=f"offsets of {begin} to {stored.size}",
            actual=f"{offsets.min()} to {offsets.max()}",
        )
    contents = stored.tobytes()
    ends = offsets.tolist()
    strings = np.empty(count, object)
    strings[:] = [decoded(contents[a:b]) for a, b in pairwise(ends)]
    return strings
