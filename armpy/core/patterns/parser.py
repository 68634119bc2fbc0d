"""Parser of regular expressions, and the parts that they are made of."""

from __future__ import annotations

import enum
import re
from dataclasses import replace
from typing import TypeAlias

from armpy.core.dataclass import dataclass

Range: TypeAlias = tuple[int, int]
"""First and last code point."""

_MOST_REPEATS = 1000
_MOST_DEPTH = 100
_LAST_CODE = 0x10FFFF

_DIGITS: tuple[Range, ...] = ((48, 57),)
_LETTERS: tuple[Range, ...] = ((65, 90), (97, 122))
_SPACES: tuple[Range, ...] = ((9, 10), (12, 13), (32, 32))
_WORDS: tuple[Range, ...] = (*_DIGITS, *_LETTERS, (95, 95))
_CLASSES = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
_NAMED = {
    "alnum": (*_DIGITS, *_LETTERS),
    "alpha": _LETTERS,
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORDS,
    "xdigit": (*_DIGITS, (65, 70), (97, 102)),
}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LINE_BREAK: tuple[Range, ...] = ((10, 10),)

_COUNT = re.compile(r"\{(\d{1,9})(,(\d{1,9})?)?\}", re.ASCII)
_HEX = re.compile(r"x(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{2}))")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_GROUP = re.compile(r"\?(?:P?<([A-Za-z_]\w*)>|([imsU]*)(?:-([imsU]+))?([:)]))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of ranges."""

    ranges: tuple[Range, ...]
    is_negated: bool = False  # whether it is one that is in none of the ranges
    ignores_case: bool = False

    def has(self, character: str) -> bool:
        """Return whether a character is one of these."""
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


_ASSERTIONS = {
    "A": Assertion.TEXT_BEGIN,
    "z": Assertion.TEXT_END,
    "b": Assertion.WORD_EDGE,
    "B": Assertion.NO_WORD_EDGE,
}


_REVERSED = {
    Assertion.TEXT_BEGIN: Assertion.TEXT_END,
    Assertion.TEXT_END: Assertion.TEXT_BEGIN,
    Assertion.LINE_BEGIN: Assertion.LINE_END,
    Assertion.LINE_END: Assertion.LINE_BEGIN,
}
"""Conditions for texts that are read from the end."""


class PatternError(Exception):
    """A text that is not a regular expression in RE2's syntax."""


@dataclass(frozen=True, slots=True)
class _Flags:
    """Flags at a place of the pattern: ``i``, ``m`` and ``s``."""

    ignores_case: bool = False
    has_lines: bool = False
    dot_is_all: bool = False


def parse(pattern: str) -> Node:
    """Parse a regular expression.

    Reference: RE2, "Syntax".

    Raises
    ------
    PatternError
        If it is not one in RE2's syntax, or has a class of Unicode.
    """
    parser = _Parser(pattern)
    node = parser.choice(0)
    if parser.place < len(pattern):
        raise PatternError("a ')' without '('")
    return node


def reversed_node(node: Node) -> Node:
    """The pattern of the same texts, read from the end."""
    if isinstance(node, Concatenation):
        return Concatenation(tuple(map(reversed_node, reversed(node.parts))))
    if isinstance(node, Alternation):
        return Alternation(tuple(map(reversed_node, node.parts)))
    if isinstance(node, Repeat):
        return replace(node, part=reversed_node(node.part))
    return _REVERSED.get(node, node) if isinstance(node, Assertion) else node


class _Parser:
    """A pattern, and how far it is parsed."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.flags = _Flags()

    def choice(self, depth: int) -> Node:
        """Parse alternatives up to the end of the group."""
        if depth > _MOST_DEPTH:
            raise PatternError(f"groups are nested more than {_MOST_DEPTH} times")
        parts = [self._sequence(depth)]
        while self._take("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        """Parse parts up to the end of the alternative."""
        parts: list[Node] = []
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            if self._take("\\Q"):
                end = self.pattern.find("\\E", self.place)
                end = len(self.pattern) if end < 0 else end
                parts += map(self._literal, map(ord, self.pattern[self.place : end]))
                self.place = min(end + 2, len(self.pattern))
            elif (part := self._part(depth)) is not None:
                parts.append(self._repeated(part))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _part(self, depth: int) -> Node | None:
        """Parse what may be repeated; None for flags."""
        character = self.pattern[self.place]
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._set()
        if character == "\\":
            escaped = self._escaped()
            if isinstance(escaped, Assertion):
                return escaped
            return self._literal(escaped) if isinstance(escaped, int) else Characters(escaped)
        if character in "*+?" or _COUNT.match(self.pattern, self.place):
            raise PatternError(f"'{character}' has nothing to repeat")
        self.place += 1
        flags = self.flags
        if character == ".":
            return Characters(() if flags.dot_is_all else _LINE_BREAK, is_negated=True)
        if character == "^":
            return Assertion.LINE_BEGIN if flags.has_lines else Assertion.TEXT_BEGIN
        if character == "$":
            return Assertion.LINE_END if flags.has_lines else Assertion.TEXT_END
        return self._literal(ord(character))

    def _repeated(self, part: Node) -> Node:
        least, most = 1, None
        if self._take("*"):
            least = 0
        elif self._take("?"):
            least, most = 0, 1
        elif count := _COUNT.match(self.pattern, self.place):
            self.place = count.end()
            least = int(count[1])
            if count[2] is None:
                most = least
            elif count[3] is None:
                most = None
            else:
                most = int(count[3])
            if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
                raise PatternError(f"{count[0]} is not 0 to {_MOST_REPEATS} in ascending order")
        elif not self._take("+"):
            return part
        self._take("?")  # the shortest match first: a full match is the same
        if self.place < len(self.pattern) and (
            self.pattern[self.place] in "*+?" or _COUNT.match(self.pattern, self.place)
        ):
            raise PatternError("a repetition is repeated")
        return Repeat(part, least, most)

    def _group(self, depth: int) -> Node | None:
        """Parse a group; None for flags that hold for the rest of the group around them."""
        self.place += 1
        before = self.flags
        if self.pattern.startswith("?", self.place):
            head = _GROUP.match(self.pattern, self.place)
            if head is None:
                raise PatternError(f"'({self.pattern[self.place :][:3]}' is not in RE2's syntax")
            self.place = head.end()
            if head[4] is not None:
                self.flags = _changed(_changed(before, head[2], True), head[3] or "", False)
            if head[4] == ")":
                return None
        node = self.choice(depth + 1)
        if not self._take(")"):
            raise PatternError("a '(' without ')'")
        self.flags = before
        return node

    def _set(self) -> Characters:
        self.place += 1
        is_negated = self._take("^")
        ranges: list[Range] = []
        is_first = True
        while is_first or not self._take("]"):
            if self.place >= len(self.pattern):
                raise PatternError("a '[' without ']'")
            ranges += self._set_item()
            is_first = False
        return Characters(tuple(ranges), is_negated, self.flags.ignores_case)

    def _set_item(self) -> tuple[Range, ...]:
        """Parse a class, character or range in brackets."""
        if self._take("[:"):
            end = self.pattern.find(":]", self.place)
            name = self.pattern[self.place : max(end, self.place)]
            ranges = _NAMED.get(name.removeprefix("^"))
            if ranges is None:
                raise PatternError("a class in '[: :]' has an unknown name")
            self.place = end + 2
            return _complement(ranges) if name.startswith("^") else ranges
        low = self._set_character()
        if isinstance(low, tuple):
            return low
        if self.pattern[self.place : self.place + 2] in ("", "-", "-]") or not self._take("-"):
            return ((low, low),)
        high = self._set_character()
        if isinstance(high, tuple) or high < low:
            raise PatternError("a range of characters is not in ascending order")
        return ((low, high),)

    def _set_character(self) -> int | tuple[Range, ...]:
        """Parse a character, or an escaped class, in brackets."""
        character = self.pattern[self.place]
        if character != "\\":
            self.place += 1
            return ord(character)
        item = self._escaped()
        if isinstance(item, Assertion):
            raise PatternError("a condition is in a set of characters")
        return item

    def _escaped(self) -> int | tuple[Range, ...] | Assertion:
        """Parse what a backslash begins."""
        self.place += 1
        name = self.pattern[self.place : self.place + 1]
        if digits := _OCTAL.match(self.pattern, self.place):
            self.place = digits.end()
            return int(digits[0], 8)
        if number := _HEX.match(self.pattern, self.place):
            self.place = number.end()
            code = int(number[1] or number[2], 16)
            if code > _LAST_CODE:
                raise PatternError(f"'\\{number[0]}' is beyond the last character")
            return code
        self.place += 1
        if name in _ASSERTIONS:
            return _ASSERTIONS[name]
        if name.lower() in _CLASSES:
            ranges = _CLASSES[name.lower()]
            return ranges if name.islower() else _complement(ranges)
        if name in _CONTROLS:
            return _CONTROLS[name]
        if name and name.isascii() and not name.isalnum():
            return ord(name)
        raise PatternError(f"'\\{name}' is not in RE2's syntax, or a class of Unicode")

    def _literal(self, code: int) -> Characters:
        """One character, in either case if that does not matter."""
        return Characters(((code, code),), ignores_case=self.flags.ignores_case)

    def _take(self, text: str) -> bool:
        """Skip a text if the pattern has it at this place."""
        is_there = self.pattern.startswith(text, self.place)
        if is_there:
            self.place += len(text)
        return is_there


def _changed(flags: _Flags, names: str, value: bool) -> _Flags:
    """Flags of which some have another value; ``U`` says which match is found, not whether."""
    if "i" in names:
        flags = replace(flags, ignores_case=value)
    if "m" in names:
        flags = replace(flags, has_lines=value)
    return replace(flags, dot_is_all=value) if "s" in names else flags


def _complement(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Ranges of all other characters; the given ones are in ascending order."""
    begin, others = 0, []
    for first, last in sorted(ranges):
        if first > begin:
            others.append((begin, first - 1))
        begin = last + 1
    return (*others, (begin, _LAST_CODE))
