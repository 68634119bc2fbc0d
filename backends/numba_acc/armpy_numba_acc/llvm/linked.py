"""Calls of functions that a kernel is linked with."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# Numba and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils


def call_of(name: str, kind: ir.FunctionType):
    """What an intrinsic returns that calls a function by its name.

    Parameters
    ----------
    name : str
    kind : ir.FunctionType
        Of int64 only; it may return nothing.

    Returns
    -------
    (numba.core.typing.Signature, callable)
    """
    returns = not isinstance(kind.return_type, ir.VoidType)
    result = types.int64 if returns else types.void

    def generate(context, builder, signature, args):
        value = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)
        return value if returns else context.get_dummy_value()

    return result(*(types.int64,) * len(kind.args)), generate
