from __future__ import annotations

import pytest

from armpy.cli.values import parse_names, parse_numbers, parse_range, parse_shape, parse_size


def test_a_size_is_height_and_width() -> None:
    assert parse_size("224x320") == (224, 320)
    assert parse_size("1X2") == (1, 2)


@pytest.mark.parametrize("text", ["224", "0x5", "-1x5", "axb", "1x2x3", ""])
def test_what_is_no_size_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected HEIGHTxWIDTH"):
        parse_size(text)


def test_a_size_that_no_memory_holds_is_rejected() -> None:
    with pytest.raises(ValueError, match="at most 67108864 pixels"):
        parse_size("99999x99999")


def test_numbers_have_commas_between_them() -> None:
    assert parse_numbers("1,-2.5, 3e1") == (1.0, -2.5, 30.0)


@pytest.mark.parametrize("text", ["", "1,,2", "a"])
def test_what_is_no_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected numbers"):
        parse_numbers(text)


@pytest.mark.parametrize("text", ["nan", "1,inf"])
def test_numbers_must_be_finite(text: str) -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        parse_numbers(text)


def test_a_range_is_two_different_numbers() -> None:
    assert parse_range("-1,1") == (-1.0, 1.0)
    for text in ("1", "1,1", "1,2,3"):
        with pytest.raises(ValueError, match="expected two different numbers"):
            parse_range(text)


def test_names_have_commas_between_them() -> None:
    assert parse_names("NumbaAcc, CpuRef") == ("NumbaAcc", "CpuRef")
    with pytest.raises(ValueError, match="expected names"):
        parse_names("A,")


@pytest.mark.parametrize(
    ("text", "shape"),
    [("x=1,224,3", ("x", (1, 224, 3))), ("a=b:0=2", ("a=b:0", (2,))), ("x=", ("x", ()))],
)
def test_a_shape_has_a_name_and_sizes(text: str, shape: tuple[str, tuple[int, ...]]) -> None:
    assert parse_shape(text) == shape
