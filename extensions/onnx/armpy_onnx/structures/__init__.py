"""Operators that run graphs, or whose operands are more than tensors.

Unlike those of `armpy_onnx.operators` they are handed names' scopes and sequences. A new
one is one entry in its family's ``STRUCTURES``.
"""

from __future__ import annotations

from armpy.core.lazy import ModuleTables

_FAMILIES = ModuleTables(__name__, "STRUCTURES")


def structure_of(kind: str):  # type: ignore[no-untyped-def]  # `Structure` imports this package
    """The function that converts nodes of a kind; None if there is none."""
    return _FAMILIES.entry(kind, kind.rpartition(".")[2])
