"""Words in memory that native code and Python share, by name.

Notes
-----
They describe executions, and so are needed at every start: subclasses of `MemoryLayout` are plain
classes, whose annotations are the words' names and types.
"""

from __future__ import annotations

from typing import TypeAlias

Pointer: TypeAlias = int
"""An address; 0 for none."""


class MemoryLayout:
    """Layout in words of 64 bits, one for each annotation of a subclass."""

    __slots__ = ()

    @classmethod
    def word_names(cls) -> tuple[str, ...]:
        """Names of the words, or of layouts within it, in order."""
        return tuple(cls.__annotations__)


def num_words(layout: type[MemoryLayout]) -> int:
    """Integers of 64 bits that a layout takes."""
    return len(layout.word_names())


def word_of(layout: type[MemoryLayout], name: str) -> int:
    """Which of a layout's integers a word is."""
    return layout.word_names().index(name)


def words_of(layout: type[MemoryLayout], **values: int) -> list[int]:
    """A layout's words in order, each of which has to be given.

    Raises
    ------
    TypeError
        If other words are given.
    """
    names = layout.word_names()
    if values.keys() != set(names):
        raise TypeError(f"{layout.__name__} has the words {names}, not {(*values,)}")
    return [values[name] for name in names]
