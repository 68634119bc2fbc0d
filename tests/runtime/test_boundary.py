"""What the plugin boundary makes of whatever a backend does."""

from __future__ import annotations

import pytest

from armpy.errors import ArmpyError, BackendError, LayerValidationError
from armpy.plugins.proxy.guarded_call import (
    LONGEST_DESCRIPTION,
    ask_backend,
    ask_method,
    call_backend,
    call_method,
    describe,
    is_a,
    let_user_interrupt,
    raised_by_statement,
    read_backend,
)


class Plugin:
    """Something a backend made."""

    size = 5

    def right(self, number: int = 1) -> int:
        return number

    def wrong(self) -> None:
        raise ValueError("oops")

    @property
    def gone(self) -> int:
        raise SystemExit(3)


def wrapped() -> int:
    """A method under the name of its decorator's wrapper."""
    return 1


class Renamed(Plugin):
    right = staticmethod(wrapped)  # type: ignore[assignment]  # as decorators do


def test_right_answers_pass() -> None:
    assert call_backend("A", Plugin().right, 2) == 2
    assert ask_backend("A", int, Plugin().right, number=3) == 3
    assert call_method("A", Plugin(), "right", 4) == 4
    assert ask_method("A", (int, str), Plugin(), "right") == 1
    assert read_backend("A", Plugin(), "size", int) == 5


def test_errors_name_the_backend_and_the_contracts_method() -> None:
    with pytest.raises(BackendError, match=r"^A / wrong: the backend raised ValueError\('oops'\)"):
        call_backend("A", Plugin().wrong)
    with pytest.raises(BackendError, match=r"^A / right: .* type\. Expected str or None; got 1"):
        ask_method("A", (str, type(None)), Renamed(), "right")
    with pytest.raises(BackendError, match=r"^A / gone: the backend raised SystemExit\(3\)"):
        call_method("A", Plugin(), "gone")
    with pytest.raises(BackendError, match=r"^A / missing: .*AttributeError"):
        call_method("A", Plugin(), "missing")


def test_a_backends_own_error_keeps_its_kind_and_its_cause() -> None:
    cause = OSError("device")

    def fails() -> None:
        raise LayerValidationError("rank 9", where="gather") from cause

    with pytest.raises(LayerValidationError, match=r"^A / fails / gather: rank 9\.$") as caught:
        call_backend("A", fails)
    assert caught.value.__cause__ is cause


class HalfError(ArmpyError):
    """Does not call its base's ``__init__``."""

    def __init__(self) -> None:
        return


def test_an_error_that_is_not_whole_becomes_one_that_is() -> None:
    def fails() -> None:
        raise HalfError

    with pytest.raises(BackendError, match=r"^A / fails: the backend raised HalfError, .*damaged"):
        call_backend("A", fails)


class Hostile:
    """Raises whenever it is looked at."""

    def __repr__(self) -> str:
        raise SystemExit("no repr")

    @property  # type: ignore[misc]  # that is the point
    def __class__(self) -> type:
        raise GeneratorExit("no class")


def test_looking_at_an_answer_is_contained() -> None:
    assert not is_a(Hostile(), int)
    assert describe(Hostile()) == "Hostile, whose repr raised SystemExit"
    with pytest.raises(BackendError, match=r"Expected int; got Hostile, whose repr raised"):
        ask_backend("A", int, Hostile)


def test_long_answers_are_shortened() -> None:
    text = describe("x" * 1000)
    assert text.endswith("xxx...")
    assert len(text) == LONGEST_DESCRIPTION + 3


def test_only_a_raise_statement_makes_an_interrupt_a_backends_own() -> None:
    never_raised = KeyboardInterrupt()
    assert not raised_by_statement(never_raised)
    with pytest.raises(KeyboardInterrupt):
        let_user_interrupt(never_raised)
    let_user_interrupt(SystemExit())
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        assert raised_by_statement(error)  # noqa: PT017 - about the exception itself
        let_user_interrupt(error)
