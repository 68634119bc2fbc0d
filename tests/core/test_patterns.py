"""Regular expressions that match in bounded time."""

from __future__ import annotations

import random
import re

import pytest

from armpy.core.patterns import matcher
from armpy.core.patterns.matcher import RegularExpression
from armpy.core.patterns.parser import PatternError

MATCHES = [
    ("", "", True),
    ("", "a", False),
    ("a.c", "abc", True),
    ("a.c", "a\nc", False),
    ("(?s)a.c", "a\nc", True),
    ("a$", "a\n", False),
    ("(?m)a$\\nb", "a\nb", True),
    ("(?m:^a\\n^)b", "a\nb", True),
    ("(?i)straSSe", "STRASSE", True),
    ("(?i:a)b", "AB", False),
    ("(?i)a(?-i)b", "AB", False),
    ("x{2}", "xx", True),
    ("x{2,3}", "xxxx", False),
    ("x{2,}?", "xxxx", True),
    ("x{,2}", "x{,2}", True),
    ("(?P<first>a|b)(?<second>c)", "bc", True),
    ("[[:alpha:]-]+", "a-Z", True),
    ("[^[:^digit:]]", "7", True),
    ("[]a^-]+", "]^-a", True),
    (r"\d\D\s\S\w\W", "1a b_!", True),
    (r"\d", "\u0663", False),
    (r"\x41\x{1F600}\101\Q.*\E", "A\U0001f600A.*", True),
    (r"\bword\b\B", "word", False),
    (r"\Aa\z", "a", True),
    (r"[a-c\d\-]+", "b-3", True),
    ("(a*)*(b|)+", "aab", True),
]
"""Patterns, texts, and RE2's answers."""


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_a_pattern_matches_as_in_re2(pattern: str, text: str, expected: bool) -> None:
    assert RegularExpression(pattern).matches(text) is expected


REFUSED = [
    "(",
    ")",
    "[a",
    "[b-a]",
    "[[:letter:]]",
    "*a",
    "a**",
    "a{2}{3}",
    "a{1001}",
    "a{2,1}",
    "(?=a)a",
    "(?<!a)b",
    "(?>a)",
    "(?x)a",
    r"(a)\1",
    r"\pL",
    r"\Z",
    "\\",
    r"\x{110000}",
    r"[\b]",
]


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_beyond_re2_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        RegularExpression(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(((a{1000}){1000}){1000}){1000}", "more than 10000 steps"),
        ("((((){1000}){1000}){1000}){1000}", "more than 10000 steps"),
        ("(" * 5000, "nested more than 100 times"),
    ],
    ids=["repeats", "empty-repeats", "groups"],
)
def test_a_pattern_that_grows_without_bounds_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        RegularExpression(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*c", "(.*)*x", "(a|aa)+$"])
def test_a_hostile_pattern_takes_one_step_for_each_character(pattern: str) -> None:
    steps = []
    assert not RegularExpression(pattern).matches("a" * 5000 + "!", lambda: steps.append(1))
    assert len(steps) < 10, "the states repeat, and each transition is computed once"


def test_states_beyond_the_limit_are_forgotten_and_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matcher, "_MOST_TRANSITIONS", 3)
    pattern = RegularExpression("(a|b)*a(a|b){3}")
    steps: list[int] = []
    for _ in range(2):
        assert pattern.matches("babbaabb", lambda: steps.append(1))
        assert not pattern.matches("babbabbbab", lambda: steps.append(1))
    assert len(steps) > 20, "with all transitions kept, the second time takes no new ones"


SEARCHES = [
    ("a|ab", "xabab", [(1, 3), (3, 5)]),
    ("(a|ab)(c|bcd)", "abcd", [(0, 4)]),
    ("a+?", "baa", [(1, 3), (2, 3)]),
    ("x*", "ax", [(0, 0), (1, 2), (2, 2)]),
    (r"\b\w\w+\b", "a bc\u00fcd ef", [(2, 4), (7, 9)]),
    (r"\B.", "ab c", [(1, 2)]),
    ("^a|a$|^$", "aaa", [(0, 1), (2, 3)]),
    ("(?m)^.|.$", "ab\ncd", [(0, 1), (1, 2), (3, 4), (4, 5)]),
    (r"\A\n|\n\z", "\n\n\n", [(0, 1), (2, 3)]),
    ("(?i)\u00fc|[\u65e5-\u672c]", "\u00dc\u672c", [(0, 1), (1, 2)]),
    ("a{2,3}", "aaaa", [(0, 3), (1, 4), (2, 4)]),
    ("b", "aaa", []),
]
"""Patterns, texts, and each start of a match with the longest one's end."""


@pytest.mark.parametrize(("pattern", "text", "expected"), SEARCHES)
def test_each_start_of_a_match_has_a_longest_end(
    pattern: str, text: str, expected: list[tuple[int, int]]
) -> None:
    expression = RegularExpression(pattern)
    starts = expression.starts(text)
    assert [(start, expression.longest_end(text, start)) for start in starts] == expected


@pytest.mark.parametrize("pattern", ["(a+)+!", "(a|a)*b", "(a*)*c", "(.*)*x", "(a|aa)+$"])
def test_a_hostile_search_takes_one_step_for_each_character(pattern: str) -> None:
    steps: list[int] = []
    text = "a" * 5000 + "-"
    assert not RegularExpression(pattern).starts(text, lambda: steps.append(1))
    assert len(steps) < 10, "the states repeat, and each transition is computed once"


PARTS = ("a", "b", ".", r"\w", r"\W", "[^a]", "^", "$", r"\b", "(?i:A)", "\n", "[a-c]")
REPEATS = ("", "*", "+", "?", "{2}", "{0,2}", "*?")


def made(generator: random.Random, depth: int) -> str:
    """A random pattern that Python's `re` and RE2 take alike."""
    if depth == 0 or generator.random() < 0.3:
        return generator.choice(PARTS)
    first, second = made(generator, depth - 1), made(generator, depth - 1)
    kind = generator.randrange(3)
    if kind == 0:
        return first + second
    if kind == 1:
        return f"(?:{first}|{second})"
    return f"({first}{second}){generator.choice(REPEATS)}"


def test_random_patterns_match_as_pythons_do() -> None:
    generator = random.Random(20261124)
    for _ in range(400):
        pattern = made(generator, 4)
        expected, actual = re.compile(pattern, re.ASCII), RegularExpression(pattern)
        for _ in range(4):
            text = "".join(generator.choice("abA\n ") for _ in range(generator.randrange(6)))
            is_match = expected.fullmatch(text) is not None
            assert actual.matches(text) is is_match, (pattern, text)


def test_random_patterns_are_found_as_pythons_are() -> None:
    generator = random.Random(20261128)
    for _ in range(40):
        pattern = made(generator, 3)
        text = "".join(generator.choice("abA\n ") for _ in range(generator.randrange(6)))
        # Python takes the first of several ways to match, so each length is asked for alone; its
        # `$` matches before a last line break, too.
        same = pattern.replace("$", r"\Z")
        by_rest = [re.compile(rf"(?:{same})(?=[\s\S]{{{n}}}\Z)", re.ASCII) for n in range(6)]
        expected = {
            start: len(text) - rest
            for start in range(len(text) + 1)
            for rest in reversed(range(len(text) - start + 1))
            if by_rest[rest].match(text, start)
        }
        expression = RegularExpression(pattern)
        starts = expression.starts(text)
        actual = {start: expression.longest_end(text, start) for start in starts}
        assert actual == expected, (pattern, text)
