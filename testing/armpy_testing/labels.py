"""Names of parametrised cases."""

from __future__ import annotations

from armpy.ops.operation import Operation


def operation_label(value: object) -> str | None:
    """The operation stands for the case; pytest numbers the other values."""
    return repr(value) if isinstance(value, Operation) else None
