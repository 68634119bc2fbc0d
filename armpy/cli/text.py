"""Text that terminals can be given."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text whose control characters are escaped; names in files may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
