"""Parts of a regular expression."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]
"""First and last code point."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of ranges."""

    ranges: tuple[Range, ...]
    is_negated: bool = False  # whether it is one that is in none of the ranges
    ignores_case: bool = False

    def has(self, character: str) -> bool:
        """Whether a character is one of these."""
        spellings = {character}
        if self.ignores_case:
            spellings |= {s for s in (character.lower(), character.upper()) if len(s) == 1}
        codes = [ord(spelling) for spelling in spellings]
        is_in = any(first <= code <= last for first, last in self.ranges for code in codes)
        return is_in is not self.is_negated


class Assertion(enum.Enum):
    """Condition at a position between characters."""

    TEXT_BEGIN = enum.auto()
    TEXT_END = enum.auto()
    LINE_BEGIN = enum.auto()
    LINE_END = enum.auto()
    WORD_EDGE = enum.auto()
    NO_WORD_EDGE = enum.auto()


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times."""

    part: Node
    least: int
    most: int | None  # None without a limit


Node: TypeAlias = Characters | Assertion | Concatenation | Alternation | Repeat
