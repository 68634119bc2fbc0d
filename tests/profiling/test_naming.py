from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from armpy.profiling import short_names


def test_folders_that_all_have_are_cut_off() -> None:
    shortened = short_names(["model/block_1/conv", "model/block_1/add", "model/block_2/conv"])
    assert list(shortened.values()) == ["block_1/conv", "block_1/add", "block_2/conv"]


def test_endings_that_converters_append_to_names_are_cut_off() -> None:
    names = ["model/dw_1/BiasAdd/ReadVariableOp/resource1", "model/dw_2/BiasAdd/ReadVariableOp"]
    assert list(short_names(names).values()) == ["dw_1/BiasAdd", "dw_2/BiasAdd"]


def test_names_that_would_be_alike_stay_longer() -> None:
    names = ["a;m/relu", "b;m/relu", "c;m/add"]
    assert list(short_names(names).values()) == ["a;m/relu", "b;m/relu", "add"]


def test_a_long_name_loses_its_middle() -> None:
    shortened = short_names(["first_" + "x" * 100 + "_last", "other"], 30)
    short = next(iter(shortened.values()))
    assert len(short) == 30
    assert short.startswith("first_")
    assert short.endswith("_last")


@given(st.lists(st.text("ab/;# 1+", max_size=12), unique=True), st.integers(4, 12))
def test_short_names_are_distinct(names: list[str], longest: int) -> None:
    shortened = short_names(names, longest)
    assert list(shortened) == names
    assert len(set(shortened.values())) == len(names)
