"""Activation functions of float32, for code that Numba compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, clamp, vector
from armpy_numba_acc.tiles.elementwise import functions

_FUNCTIONS: Mapping[str, Callable[[CodeValue], CodeValue]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: clamp(x, 0.0, float("inf")),
    "RELU1": lambda x: clamp(x, -1.0, 1.0),
    "RELU6": lambda x: clamp(x, 0.0, 6.0),
    "TANH": functions.tanh,
    "SIGMOID": functions.sigmoid,
}
"""By the names of `armpy.ops.RecurrentActivation`."""


@cache
def make_activate(lanes: int, name: str) -> Primitive:
    """Make ``activate(target, source)`` for one vector in memory.

    Parameters
    ----------
    lanes
        Elements of the vector.
    name
        Of an `armpy.ops.RecurrentActivation`.
    """

    @primitive(NOTHING, WORD, WORD)
    def activate(code: Code, target: CodeValue, source: CodeValue) -> None:
        target.store(_FUNCTIONS[name](source.load(vector(F32, lanes))))

    return activate
