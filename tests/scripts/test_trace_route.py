"""The script that counts what a load goes through counts what ran, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from armpy.tensor import TensorInfo
from armpy.types import DataType
from scripts.trace_route import Route


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
