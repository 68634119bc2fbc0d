"""Option values that are more than a word or a number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import click

_Value = TypeVar("_Value")

_MOST_PIXELS = 1 << 26


class FiniteRange(click.FloatRange):
    """A range of numbers that not-a-number and infinity are outside of."""

    def convert(
        self,
        value: Any,  # Any: as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read a number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


def parse_size(text: str) -> tuple[int, int]:
    """Height and width of ``224x320``."""
    match = re.fullmatch(r"([1-9]\d{0,8})[xX]([1-9]\d{0,8})", text)
    if match is None:
        raise ValueError("expected HEIGHTxWIDTH such as 224x320")
    height, width = int(match[1]), int(match[2])
    if height * width > _MOST_PIXELS:
        raise ValueError(f"expected at most {_MOST_PIXELS} pixels")
    return height, width


def parse_numbers(text: str) -> tuple[float, ...]:
    """Finite numbers with commas between them."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError("expected numbers with commas between them") from error
    if not all(map(math.isfinite, numbers)):
        raise ValueError("expected finite numbers")
    return numbers


def parse_range(text: str) -> tuple[float, ...]:
    """Two different numbers."""
    numbers = parse_numbers(text)
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError("expected two different numbers such as -1,1")
    return numbers


def parse_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("expected names with commas between them")
    return names


def _read(
    parse: Callable[[str], _Value], context: click.Context, param: click.Parameter, text: str
) -> _Value:
    """A value of an option's text, by a function that raises `ValueError`."""
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(f"'{text}': {error}.", context, param) from error


def parse_name_lists(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Names with commas between them, each time that the option is given; its callback."""
    return [_read(parse_names, context, param, text) for text in texts]


def parse_all_names(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...] | None:
    """All names of an option that may be repeated, or None if it is not given; its callback."""
    return tuple(chain.from_iterable(parse_name_lists(context, param, texts))) or None


Shapes = dict[str, tuple[int, ...]]
"""Of inputs, by name."""


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Name and sizes of ``x=1,224,224,3``; a scalar has no sizes."""
    name, equals, sizes = text.rpartition("=")
    if not (name and equals) or not re.fullmatch(r"(\d{1,9}(,\d{1,9})*)?", sizes):
        raise ValueError("expected NAME=SIZES such as x=1,224,224,3")
    return name, tuple([int(size) for size in sizes.split(",") if size])


def parse_shape_sets(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[Shapes]:
    """Sets of shapes: a name that comes again begins the next one; an option's callback."""
    sets: list[Shapes] = []
    for text in texts:
        name, shape = _read(parse_shape, context, param, text)
        if not sets or name in sets[-1]:
            sets.append({})
        sets[-1][name] = shape
    return sets


def parsed(
    parse: Callable[[str], _Value],
) -> Callable[[click.Context, click.Parameter, str | None], _Value | None]:
    """An option's callback made of a function that raises `ValueError`."""

    def callback(context: click.Context, param: click.Parameter, text: str | None) -> _Value | None:
        return None if text is None else _read(parse, context, param, text)

    return callback
