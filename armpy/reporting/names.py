"""Short names of layers, for charts and graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

SHORT = 34
"""Characters that a short name has at most, if it stays its own."""


def short_names(names: Sequence[str]) -> list[str]:
    """Names without what all have in common, and without what converters have put behind.

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    list of str
        Different names stay different.
    """
    prefix = _common_folders(names)
    bare = [name[len(prefix) :] or name for name in names]
    heads = [name.split(";", 1)[0] or name for name in bare]
    lasts = [_last_parts(head) for head in heads]
    whole: dict[str, str] = {}
    for tries in (lasts, heads, bare):
        owners = Counter((text, name) for text, name in set(zip(tries, names, strict=True)))
        shared = Counter(text for text, _ in owners)
        for text, name in zip(tries, names, strict=True):
            if shared[text] == 1:
                whole.setdefault(name, text)
    return [whole.get(name, name) for name in names]


def _common_folders(names: Sequence[str]) -> str:
    """Folders that all names begin with: ``mobilenet/``."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[: first.rfind("/", 0, length) + 1]


def _last_parts(name: str) -> str:
    """As many of the last folders as a short name has room for."""
    parts = name.split("/")
    short = parts.pop()
    while parts and len(parts[-1]) + 1 + len(short) <= SHORT:
        short = f"{parts.pop()}/{short}"
    return short
