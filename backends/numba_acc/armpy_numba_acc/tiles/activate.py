"""Activation functions of float32, for code that Numba compiles."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.values import Code, Value, clamp
from armpy_numba_acc.llvm.vectors import F32, load, store, vector
from armpy_numba_acc.tiles import functions

_FUNCTIONS: Mapping[str, Callable[[Value], Value]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: clamp(x, 0.0, float("inf")),
    "RELU1": lambda x: clamp(x, -1.0, 1.0),
    "RELU6": lambda x: clamp(x, 0.0, 6.0),
    "TANH": functions.tanh,
    "SIGMOID": functions.sigmoid,
}
"""By the names of `armpy.ops.RecurrentActivation`."""


@cache
def make_activate(lanes: int, name: str):
    """Make ``activate(target, source)`` for one vector in memory.

    Parameters
    ----------
    lanes : int
        Elements of the vector.
    name : str
        Of an `armpy.ops.RecurrentActivation`.
    """
    kind = vector(F32, lanes)

    @intrinsic
    def activate(typingctx, target, source):
        signature = types.void(types.int64, types.int64)

        def generate(context, builder, signature, args):
            target, source = args
            result = _FUNCTIONS[name](Code(builder).of(load(builder, source, kind)))
            store(builder, result.value, target)
            return context.get_dummy_value()

        return signature, generate

    return activate
