"""Loops of models, which run until they end, as in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from armpy.backend.control_flow import execution_timeout

_P = ParamSpec("_P")
_T = TypeVar("_T")


def has_loops(model: Any) -> bool:  # Any: onnx.ModelProto
    """Return whether a model has loops, in its graph, its branches or its functions."""
    return _loops_in(model.graph.node) or any(
        _loops_in(function.node) for function in model.functions
    )


def without_time_limit(run: Callable[_P, _T]) -> Callable[_P, _T]:
    """`run`, whose loops may take any time; armpy's own limit is 2 seconds."""

    @wraps(run)
    def run_to_the_end(*args: _P.args, **keywords: _P.kwargs) -> _T:
        with execution_timeout(None):
            return run(*args, **keywords)

    return run_to_the_end


def _loops_in(nodes: Iterable[Any]) -> bool:
    return any(
        node.op_type in ("Loop", "Scan") or any(_loops_in(own.g.node) for own in node.attribute)
        for node in nodes
    )
