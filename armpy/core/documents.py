"""Documents: values made of what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum


def plain(value: object) -> object:
    """A value made of what JSON can hold.

    A dataclass becomes an object of its fields, a member of an enumeration its value, an exception
    its text. NaN and infinities, which JSON lacks, become null.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseException):
        return str(value)
    if is_dataclass(value):
        return document_of(value)
    return value


def document_of(record: object) -> dict[str, object]:
    """The fields of a dataclass as `plain` makes them."""
    return {field.name: plain(getattr(record, field.name)) for field in fields(record)}  # type: ignore[arg-type]  # a dataclass
