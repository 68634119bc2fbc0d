"""Conversions of ONNX's operators to layers: one table per family.

A new operator is one entry in its family's ``OPERATORS``.
"""

from __future__ import annotations

from armpy.core.lazy import ModuleTables
from armpy_onnx.node import Operator

_FAMILIES = ModuleTables(__name__, "OPERATORS")


def operator_of(kind: str) -> Operator | None:
    """The operator of a kind of node, see `NodeData`; None if there is none."""
    operator: Operator | None = _FAMILIES.entry(kind, kind.rpartition(".")[2])
    return operator


def converted_kinds() -> list[str]:
    """Every kind of node that has a converter."""
    return sorted(kind for module in _FAMILIES.modules() for kind in module.OPERATORS)
