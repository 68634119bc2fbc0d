"""Operations in one line, for people."""

from __future__ import annotations

import dataclasses
import enum

from armpy.ops.operation import Operation


def describe(operation: Operation) -> str:
    """An operation with those of its attributes that are not at their defaults."""
    shown = []
    for field in dataclasses.fields(operation):  # type: ignore[arg-type]  # subclasses are
        value = getattr(operation, field.name)
        if value != field.default:
            shown.append(f"{field.name}={value.name if isinstance(value, enum.Enum) else value}")
    return f"{operation.name}({', '.join(shown)})"
