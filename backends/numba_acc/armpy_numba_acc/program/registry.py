"""Registry of lowerings by operation.

A module of `armpy_numba_acc.lowering` has the lowerings of its operations in its ``LOWERINGS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.lazy import ModuleTables
from armpy.errors import BackendError
from armpy.graph import Layer
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy_numba_acc.program.emitter import Emitter

Check: TypeAlias = Callable[[Operation, OperandInfos, Sequence[TensorInfo]], str]
"""Why a layer cannot be lowered; empty if it can. All shapes are known."""

Lower: TypeAlias = Callable[["Emitter", Layer], None]
"""Adds the commands that compute a layer's outputs."""


@dataclass(frozen=True, slots=True)
class LoweringRule:
    """Rule by which an operation is lowered."""

    check: Check  # see `Check`
    lower: Lower  # see `Lower`


_LOWERINGS = ModuleTables("armpy_numba_acc.lowering", "LOWERINGS")


def lowering_of(operation: Operation) -> LoweringRule | None:
    """Return the lowering of an operation; None if there is none. Imports what only it needs."""
    kind = type(operation)
    lowering: LoweringRule | None = _LOWERINGS.entry(kind, kind.__name__)
    return lowering


def refusal_of(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Why a layer, whose shapes are known, cannot be lowered as it is; empty if it can."""
    lowering = lowering_of(operation)
    if lowering is None:
        return f"NumbaAcc has no {operation.name}"
    return lowering.check(operation, inputs, outputs)


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the commands of a layer that can be lowered.

    Raises
    ------
    BackendError
        If it cannot: it should have been refused.
    """
    lowering = lowering_of(layer.operation)
    if lowering is None:
        raise BackendError(
            f"NumbaAcc has no {layer.operation.name}",
            where=layer.where,
            expected="a layer that was taken",
        )
    lowering.lower(emit, layer)
