"""The script that counts what a load goes through counts what ran, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import armpy.tensor
from armpy.tensor import TensorInfo
from armpy.types import DataType
from lab import trace_route
from lab.trace_route import Route


def traced(work: Callable[[], object]) -> Route:
    """What ran while a function was traced."""
    route = Route()
    route.trace(work)
    return route


def test_a_route_has_the_files_and_classes_that_were_used() -> None:
    route = traced(lambda: [TensorInfo((2,), DataType.FLOAT32) for _ in range(3)])
    assert "armpy/tensor.py" in route.files
    assert route.classes == {"armpy.tensor.TensorInfo": 3}


def test_what_is_not_the_core_is_not_counted() -> None:
    route = traced(lambda: sorted([3, 1, 2], key=abs))
    assert not route.files
    assert not route.functions
    assert not route.classes


def test_comprehensions_and_bodies_of_classes_are_no_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_route, "CORE", str(Path(__file__).parent))
    monkeypatch.setattr(trace_route, "ROOT", Path(__file__).parent)

    def work() -> None:
        class Local:
            numbers = tuple(number for number in range(3))

        assert [number for number in Local.numbers] == [0, 1, 2]

    functions = {name.rpartition(".")[2] for _, name in traced(work).functions}
    assert functions == {"work", "<genexpr>"}


def test_imported_modules_are_those_of_the_core_with_their_lines() -> None:
    modules = trace_route.imported()
    assert modules["armpy.tensor"] == Path(armpy.tensor.__file__).read_text("utf-8").count("\n")
    assert {name.split(".")[0] for name in modules} == {"armpy"}
