"""Operands of recurrent operations: by name, and with the time first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from armpy.backend import WorkloadInfo
from armpy.ops.operation import Array, Operation

ItemT = TypeVar("ItemT")


def by_name(operation: Operation, items: Sequence[ItemT | None]) -> dict[str, ItemT]:
    """Give each operand that is there its name."""
    names = (operand.name for operand in operation.inputs)
    return {name: item for name, item in zip(names, items, strict=False) if item is not None}


def weights_of(
    operation: Operation, operands: Sequence[Array | None], prefix: str = ""
) -> dict[str, Array]:
    """Arrays by name of all that is neither data nor state.

    Parameters
    ----------
    operands : sequence of (ndarray or None)
        One per input.
    prefix
        Selects the operands of one direction; taken off their names.
    """
    return {
        name.removeprefix(prefix): values
        for name, values in by_name(operation, operands).items()
        if name.startswith(prefix) and _is_weight(name)
    }


def has_constant_weights(operation: Operation, info: WorkloadInfo) -> bool:
    """Return whether all operands that are neither data nor state are constants."""
    constants = by_name(operation, info.constants)
    return all(name in constants for name in by_name(operation, info.inputs) if _is_weight(name))


def time_major(values: Array, is_time_major: bool) -> Array:
    """View a sequence (b, t, ...) or (t, b, ...) with the time first."""
    return values if is_time_major else values.swapaxes(0, 1)


def _is_weight(name: str) -> bool:
    """Return whether an operand is neither data nor state."""
    return name not in ("input", "aux_input") and not name.endswith("_state_in")
