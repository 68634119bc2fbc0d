from __future__ import annotations

import math

import pytest

from armpy.backend import BackendOption, OptionScope, OptionValue
from armpy.backend.options import check_options
from armpy.errors import InvalidArgumentError

THREADS = BackendOption("num_threads", 0, "0 is one per core.", minimum=0, maximum=64)
RATIO = BackendOption("ratio", 0.5, "How much.", minimum=0, maximum=1)
SCALE = BackendOption("scale", 1.0, "Any number.")
MODE = BackendOption("mode", "fast", "How.", OptionScope.MODEL, choices=("fast", "exact"))
LEVEL = BackendOption("level", 1, "How far.", choices=(1, 2, 4))
CACHE = BackendOption("cache", True, "Whether to keep programs.", OptionScope.MODEL)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (THREADS, 0),
        (THREADS, 64),
        (RATIO, 0.0),
        (RATIO, 1.0),
        (SCALE, -1e300),
        (SCALE, math.inf),
        (MODE, "exact"),
        (LEVEL, 4),
        (CACHE, False),
    ],
)
def test_allowed_values_are_taken_as_they_are(option: BackendOption, value: OptionValue) -> None:
    checked = option.check(value)
    assert (type(checked), checked) == (type(value), value)


@pytest.mark.parametrize(("option", "value"), [(RATIO, 1), (SCALE, -3)])
def test_an_integer_will_do_for_a_float(option: BackendOption, value: int) -> None:
    checked = option.check(value)
    assert (type(checked), checked) == (float, value)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        (THREADS, -1, "a whole number from 0 to 64; got -1"),
        (THREADS, 65, "a whole number from 0 to 64; got 65"),
        (THREADS, True, "a whole number from 0 to 64; got True"),
        (THREADS, 2.0, "a whole number from 0 to 64; got 2.0"),
        (THREADS, "2", "a whole number from 0 to 64; got '2'"),
        (THREADS, None, "a whole number from 0 to 64; got None"),
        (RATIO, 1.5, "a number from 0 to 1; got 1.5"),
        (RATIO, math.nan, "a number from 0 to 1; got nan"),
        (RATIO, True, "a number from 0 to 1; got True"),
        (SCALE, 10**400, "a number; got 1000"),
        (SCALE, "1", "a number; got '1'"),
        (MODE, "slow", "one of 'fast', 'exact'; got 'slow'"),
        (MODE, 1, "one of 'fast', 'exact'; got 1"),
        (LEVEL, 3, "one of 1, 2, 4; got 3"),
        (LEVEL, True, "one of 1, 2, 4; got True"),
        (LEVEL, 1.0, "one of 1, 2, 4; got 1.0"),
        (CACHE, 1, "True or False; got 1"),
        (CACHE, "true", "True or False; got 'true'"),
        (BackendOption("x", 1, "", minimum=1), 0, "a whole number of at least 1; got 0"),
        (BackendOption("x", 1.5, "", maximum=2.5), 3.0, "a number of at most 2.5; got 3.0"),
    ],
)
def test_values_that_are_not_allowed_are_rejected(
    option: BackendOption, value: object, expected: str
) -> None:
    text = rf"^Npu: the option '{option.name}' cannot have this value\. Expected {expected}"
    with pytest.raises(InvalidArgumentError, match=text):
        option.check(value, "Npu")


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (THREADS, "8", 8),
        (RATIO, "0.25", 0.25),
        (RATIO, "1", 1.0),
        (SCALE, "-inf", -math.inf),
        (MODE, "exact", "exact"),
        (LEVEL, "2", 2),
        *[(CACHE, text, True) for text in ("true", " TRUE ", "1", "on", "On")],
        *[(CACHE, text, False) for text in ("false", "0", "OFF")],
    ],
)
def test_values_are_read_from_text(option: BackendOption, text: str, value: OptionValue) -> None:
    parsed = option.parse(text)
    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (THREADS, "two"),
        (THREADS, "2.0"),
        (THREADS, "65"),
        (RATIO, "nan"),
        (RATIO, "half"),
        (MODE, "slow"),
        (LEVEL, "3"),
        (CACHE, "yes"),
        (CACHE, ""),
    ],
)
def test_text_that_is_no_allowed_value_is_rejected(option: BackendOption, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"Npu: the option '{option.name}' .* got '?"):
        option.parse(text, "Npu")


DECLARED = (THREADS, MODE, CACHE)


def test_options_are_completed_with_defaults_and_divided_by_scope() -> None:
    by_scope = check_options(DECLARED, {"mode": "exact"}, "Npu")
    assert by_scope == {
        OptionScope.RUNTIME: {"num_threads": 0},
        OptionScope.MODEL: {"mode": "exact", "cache": True},
    }
    assert check_options((), {}, "Npu") == {OptionScope.RUNTIME: {}, OptionScope.MODEL: {}}


@pytest.mark.parametrize(("name", "near"), [("num_thread", "num_threads"), ("Mode", "mode")])
def test_an_unknown_option_names_the_nearest_known_one(name: str, near: str) -> None:
    text = (
        rf"^Npu: the backend has no option '{name}'\. "
        rf"Expected cache, mode, num_threads\. Did you mean '{near}.*'\?"
    )
    with pytest.raises(InvalidArgumentError, match=text):
        check_options(DECLARED, {name: 1}, "Npu")


def test_a_value_that_is_not_allowed_names_the_backend() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Npu: the option 'mode' cannot"):
        check_options(DECLARED, {"mode": "slow"}, "Npu")
