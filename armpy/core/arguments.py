"""Checks of sizes, counts, times and objects that callers give."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

from armpy.errors import Argument, InvalidArgumentError, did_you_mean

MOST_BYTES = 2**63 - 1
"""More than any system can have; its calls do not take larger values."""
# The system keeps descriptors as C's int.
MOST_DESCRIPTORS = 2**31 - 1
MOST_THREADS = 1 << 8
"""Maximum number of threads; a larger number is a mistake, of which the system would start most."""


def check_instance(
    given: object,
    name: str,  # the argument's
    *kinds: type,  # the classes, of which one must fit
    fix: str = "",  # what to do instead, for the message
) -> None:
    """Check that an argument is an instance of a class.

    Raises
    ------
    InvalidArgumentError
        If it is an instance of none of them.
    """
    if isinstance(given, kinds):
        return
    names = [kind.__name__.replace("NoneType", "None") for kind in kinds]
    actual = f"the class {given.__qualname__}" if isinstance(given, type) else reprlib.repr(given)
    raise InvalidArgumentError(
        "the argument has the wrong type",
        argument=Argument(name),
        expected=" or ".join(names),
        actual=actual,
        fix=fix or "Pass an object of the expected type",
    )


def check_several(given: object, name: str, expected: str, *single: type) -> None:
    """Check an argument of several values; InvalidArgumentError for a `single` one, as a text."""
    if isinstance(given, single) or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            "the option has the wrong type",
            argument=Argument(name),
            expected=expected,
            actual=repr(given),
            fix="Pass a list, even for one",
        )


def check_choice(given: object, name: str, choices: Sequence[object]) -> None:
    """Check an argument that has few values; raise InvalidArgumentError for any other one."""
    if given not in choices:
        words = [f"'{c!s}'" if isinstance(c, str) else str(c) for c in choices]
        raise InvalidArgumentError(
            "the value is not allowed",
            argument=Argument(name),
            expected=" or ".join(filter(None, [", ".join(words[:-1]), words[-1]])),
            actual=repr(given),
            fix=did_you_mean(given, choices, "Choose one of these"),
        )


def check_whole(
    given: object,
    name: str,  # the argument's
    *,
    least: int = 0,
    most: int = MOST_BYTES,
    failed: str = "",  # what the message says
) -> int:
    """Check a whole number, of Python's or NumPy's.

    Raises
    ------
    InvalidArgumentError
        If it is none, or not within the bounds.
    """
    fault = "the value is not a whole number"
    if isinstance(given, Integral) and not isinstance(given, bool):
        if least <= int(given) <= most:
            return int(given)
        fault = "the number is out of range"
    upper = "or more" if most == MOST_BYTES else f"to {most}"
    raise InvalidArgumentError(
        failed or fault,
        argument=Argument(name),
        expected=f"a whole number of {least} {upper}",
        actual=repr(given),
        fix="Pass a number in this range",
    )


def check_positive(given: object, name: str, *, failed: str = "") -> float:
    """Check a number above 0, which may be infinite; parameters as for `check_whole`.

    Raises
    ------
    InvalidArgumentError
        If it is none.
    """
    fault = "the value is not a number"
    if isinstance(given, Real) and not isinstance(given, bool):
        fault = "the number is not above 0"
        try:
            value = float(given)
        except OverflowError:  # a whole number that is longer
            value = math.inf if isinstance(given, Integral) and int(given) > 0 else 0.0
        if value > 0:
            return value
    raise InvalidArgumentError(
        failed or fault,
        argument=Argument(name),
        expected="more than 0",
        actual=repr(given),
    )


def check_seconds(given: object, name: str, *, failed: str) -> float | None:
    """Check a limit of 0 seconds or more, or None for no limit; parameters as for `check_whole`.

    Raises
    ------
    InvalidArgumentError
        If it is neither.
    """
    if given is None:
        return None
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given >= 0:
        return given
    raise InvalidArgumentError(
        failed,
        argument=Argument(name),
        expected="seconds, 0 or more, or None for no limit",
        actual=repr(given),
        fix="Pass a number such as 0.5, or None",
    )
