"""Matching by sets of states, as RE2 does: no text takes more than its length in steps."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cached_property
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.patterns.parser import (
    Alternation,
    Assertion,
    Characters,
    Concatenation,
    Node,
    PatternError,
    Repeat,
    parse,
    reversed_node,
)

Check: TypeAlias = Callable[[], None]
"""Called often while a text is read; an exception that it raises ends the match."""

_MOST_STEPS = 10_000
"""Largest program: each character of a text may take as many steps."""

_MOST_TRANSITIONS = 10_000
_CHARACTERS_AT_ONCE = 1 << 16
_END = 0
"""Number of the step that ends a match."""


class _Before(enum.Enum):
    """Kind of the character in front of a position."""

    NOTHING = enum.auto()
    LINE_BREAK = enum.auto()
    WORD = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True)
class _Instruction:
    """A step of the program: read a character, pass a condition, or neither; then go on."""

    test: Characters | Assertion | None
    following: tuple[int, ...]


@dataclass(eq=False, slots=True)
class _State:
    """Steps that a match may be at, between two characters."""

    steps: frozenset[int]
    before: _Before
    following: dict[str, tuple[bool, _State]] = field(default_factory=dict)
    """Transitions by the next character, as far as they are known: whether a match ends before it,
    and the state after it.
    """


def _no_check() -> None:
    """The check of a match that nothing stops."""


class RegularExpression:
    """A regular expression in RE2's syntax.

    Raises
    ------
    PatternError
        If it is not one, or needs more than 10,000 steps.

    References
    ----------
    Thompson, "Regular Expression Search Algorithm", 1968; Cox, "Regular Expression Matching in the
    Wild", 2010.
    """

    def __init__(self, text: str) -> None:
        self._node = parse(text)
        self._forwards = _Automaton(self._node)

    @cached_property
    def _backwards(self) -> _Automaton:
        """Reads a text from its end, and ends a match wherever one of the pattern begins."""
        return _Automaton(reversed_node(self._node), is_anchored=False)

    def matches(self, text: str, check: Check = _no_check) -> bool:
        """Return whether the pattern matches a text as a whole."""
        ends = self._forwards.ends(text, _Before.NOTHING, check)
        return any(end == len(text) for end in ends)

    def starts(self, text: str, check: Check = _no_check) -> list[int]:
        """Positions in a text at which a match begins, also an empty one, in ascending order."""
        ends = self._backwards.ends(reversed(text), _Before.NOTHING, check)
        return [len(text) - end for end in ends][::-1]

    def longest_end(self, text: str, start: int, check: Check = _no_check) -> int:
        """End of the longest match that begins at one of the `starts` of a text."""
        characters = map(text.__getitem__, range(start, len(text)))
        before = _kind(text[start - 1]) if start else _Before.NOTHING
        return start + max(self._forwards.ends(characters, before, check))


class _Automaton:
    """The program of a pattern, and the states that it was in."""

    def __init__(self, node: Node, is_anchored: bool = True) -> None:
        self._steps = [_Instruction(None, ())]
        self._first = self._compile(node, _END)
        self._is_anchored = is_anchored  # otherwise, matches begin at every character
        self._states: dict[tuple[frozenset[int], _Before], _State] = {}
        self._num_transitions = 0

    def ends(self, characters: Iterable[str], before: _Before, check: Check) -> Iterator[int]:
        """Positions before which matches end, in ascending order."""
        state = self._state(frozenset((self._first,)), before)
        position = 0
        for number, character in enumerate(characters):
            if not number % _CHARACTERS_AT_ONCE:
                check()
            transition = state.following.get(character)
            if transition is None:
                check()
                transition = self._transition(state, character)
            is_end, state = transition
            if is_end:
                yield number
            if not state.steps:
                return
            position = number + 1
        if _END in self._reached(state, ""):
            yield position

    def _compile(self, node: Node, following: int) -> int:
        """Add the steps of a part in front of others; the number of the first one."""
        if isinstance(node, Characters | Assertion):
            return self._add(node, following)
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                following = self._compile(part, following)
            # So that repeating nothing counts, too.
            return following if node.parts else self._add(None, following)
        if isinstance(node, Alternation):
            return self._add(None, *[self._compile(part, following) for part in node.parts])
        return self._compile_repeat(node, following)

    def _compile_repeat(self, node: Repeat, following: int) -> int:
        """Add the steps of a part that is repeated."""
        if node.most is None:
            loop = self._add(None, following)
            again = self._compile(node.part, loop)
            self._steps[loop] = _Instruction(None, (again, following))
            following = loop
        else:
            end = following
            for _ in range(node.most - node.least):
                following = self._add(None, self._compile(node.part, following), end)
        for _ in range(node.least):
            following = self._compile(node.part, following)
        return following

    def _add(self, test: Characters | Assertion | None, *following: int) -> int:
        """Add a step; its number."""
        if len(self._steps) >= _MOST_STEPS:
            raise PatternError(f"it takes more than {_MOST_STEPS} steps")
        self._steps.append(_Instruction(test, following))
        return len(self._steps) - 1

    def _state(self, steps: Iterable[int], before: _Before) -> _State:
        """A state, which is the same object each time as long as it is kept."""
        key = frozenset(steps), before
        return self._states.setdefault(key, _State(*key))

    def _transition(self, state: _State, character: str) -> tuple[bool, _State]:
        if self._num_transitions >= _MOST_TRANSITIONS:
            self._states, self._num_transitions = {}, 0
        reached = self._reached(state, character)
        tests = ((self._steps[step].test, self._steps[step].following) for step in reached)
        steps = {
            following[0]
            for test, following in tests
            if isinstance(test, Characters) and test.has(character)
        }
        if not self._is_anchored:
            steps.add(self._first)
        transition = _END in reached, self._state(steps, _kind(character))
        state.following[character] = transition
        self._num_transitions += 1
        return transition

    def _reached(self, state: _State, character: str) -> set[int]:
        """Steps that can be reached before a character, which is empty at the end of the text."""
        reached, waiting = set(state.steps), list(state.steps)
        while waiting:
            step = self._steps[waiting.pop()]
            if isinstance(step.test, Characters):
                continue
            if step.test is None or _holds(step.test, state.before, character):
                new = [number for number in step.following if number not in reached]
                reached.update(new)
                waiting += new
        return reached


def _kind(character: str) -> _Before:
    """The kind of a character, for conditions that follow it."""
    if character == "\n":
        return _Before.LINE_BREAK
    is_word = character.isascii() and (character.isalnum() or character == "_")
    return _Before.WORD if is_word else _Before.OTHER


def _holds(assertion: Assertion, before: _Before, character: str) -> bool:
    """Return whether a condition holds between two characters; none is empty."""
    if assertion is Assertion.TEXT_BEGIN:
        return before is _Before.NOTHING
    if assertion is Assertion.TEXT_END:
        return not character
    if assertion is Assertion.LINE_BEGIN:
        return before in (_Before.NOTHING, _Before.LINE_BREAK)
    if assertion is Assertion.LINE_END:
        return character in ("", "\n")
    is_word = bool(character) and _kind(character) is _Before.WORD
    is_edge = (before is _Before.WORD) is not is_word
    return is_edge is (assertion is Assertion.WORD_EDGE)
