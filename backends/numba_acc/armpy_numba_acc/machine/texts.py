"""Texts in saved programs, compressed: few who load a program read them."""

from __future__ import annotations

import zlib

from armpy.errors import ParserError

_LARGEST_BYTES = 1 << 28


def compressed(text: str) -> bytes:
    """A text as it is in a file."""
    return zlib.compress(text.encode())


def inflated(data: bytes) -> bytes:
    """A compressed text, no more than the first 256 MiB of it.

    Raises
    ------
    ParserError
        If it is none.
    """
    try:
        return zlib.decompressobj().decompress(data, _LARGEST_BYTES)
    except zlib.error as error:
        raise ParserError(f"what commands are cannot be read: {error}") from error
