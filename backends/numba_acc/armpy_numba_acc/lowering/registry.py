"""Which operations can be lowered, and by what."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend import ReasonCode, Support
from armpy.graph import Layer
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy_numba_acc.lowering.emitter import Emitter

Check: TypeAlias = Callable[[Operation, OperandInfos, Sequence[TensorInfo]], str]
"""Why a layer cannot be lowered; empty if it can. All shapes are known."""

Lower: TypeAlias = Callable[["Emitter", Layer], None]
"""Adds the commands that compute a layer's outputs."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """How an operation is lowered.

    Parameters
    ----------
    check : callable
        See `Check`.
    lower : callable
        See `Lower`.
    """

    check: Check
    lower: Lower


FAMILIES: tuple[str, ...] = (
    "activation",
    "concatenation",
    "depthwise",
    "elementwise",
    "extremes",
    "gathering",
    "lstm",
    "matrices",
    "movement",
    "padding",
    "pooling",
    "quantizing",
    "reduction",
    "resizing",
    "svdf",
    "transposed",
    "weighted",
)
"""Modules of this package; each has what it lowers, by operation, in ``LOWERINGS``."""


@cache
def lowerings() -> Mapping[type[Operation], Lowering]:
    """Every lowering by operation."""
    found: dict[type[Operation], Lowering] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(f"armpy_numba_acc.lowering.{family}").LOWERINGS)
    return found


def support(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> Support:
    """Whether a layer can be lowered, with the reason if not."""
    lowering = lowerings().get(type(operation))
    if lowering is None:
        return Support.no(ReasonCode.OPERATION, f"NumbaAcc has no {operation.name}")
    infos = [info for info in (*inputs, *outputs) if info is not None]
    for info in infos:
        if not info.is_fully_shaped:
            return Support.no(ReasonCode.SHAPE, f"the shape of {info} is not known")
        if 0 in info.known_shape:
            return Support.no(ReasonCode.SHAPE, f"{info} has no elements")
    reason = lowering.check(operation, inputs, outputs)
    return Support.no(ReasonCode.OTHER, reason) if reason else Support.yes()
