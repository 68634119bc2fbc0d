"""Resolved types of dataclass fields."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints


@cache
def field_types(kind: Any) -> dict[str, Any]:  # Any: types have no common type
    """Type of each field of a dataclass, by name; empty for any other class."""
    if not is_dataclass(kind):
        return {}
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
