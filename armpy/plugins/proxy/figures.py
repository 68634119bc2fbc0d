"""Figures of speed and power that backends declare: their checks, and their written form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.errors import BackendError
from armpy.plugins.proxy.guarded_call import wrong_type
from armpy.types import BackendId, DataType

_TABLES: dict[str, type] = {"tensors": DataType, "scalars": DataType, "extensions": str}
"""Fields of `DeviceFigures` that are tables, with the type of their keys; others are figures."""

_LARGEST = 1e9
"""Nothing that can be used is a thousand million times slower than the reference."""


def check_figures(figures: DeviceFigures, backend_id: BackendId) -> DeviceFigures:
    """Check what a backend says of its speed and power, and copy it.

    Raises BackendError if a figure is not a number, is not above 0 or not finite, or a key is of
    another kind.

    The result is equal to `figures`, made of plain floats and dicts.
    """
    where = f"{backend_id} / get_devices"
    if not isinstance(figures, DeviceFigures):
        raise wrong_type("the set of figures", DeviceFigures, figures, where)
    plain: dict[str, Any] = {}  # Any: by field
    for field in fields(DeviceFigures):
        value, name = getattr(figures, field.name), field.name
        if name not in _TABLES:
            plain[name] = _checked(value, name, where)
            continue
        if not isinstance(value, Mapping):
            raise wrong_type(name, Mapping, value, where)
        plain[name] = table = {}
        for key, entry in value.items():
            if not isinstance(key, _TABLES[name]):
                raise wrong_type(f"a key of {name}", _TABLES[name], key, where)
            if (checked := _checked(entry, f"{name}[{key}]", where)) is not None:
                table[key] = checked
    return DeviceFigures(**plain)


def _checked(figures: object, name: str, where: str) -> PerformanceFigures | None:
    """Two figures, checked; None if there are none."""
    if figures is None:
        return None
    if not isinstance(figures, PerformanceFigures):
        raise wrong_type(name, PerformanceFigures, figures, where)
    numbers = {field.name: getattr(figures, field.name) for field in fields(PerformanceFigures)}
    for field, number in numbers.items():
        # True is an int to `isinstance`, and no figure.
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not (is_number and math.isfinite(number) and 0 < number < _LARGEST):
            raise BackendError(
                f"{name}.{field} is not a number",
                where=where,
                expected="a finite number above 0",
                actual=repr(number)[:80],
            )
    return PerformanceFigures(**{field: float(number) for field, number in numbers.items()})


def figures_fields(figures: DeviceFigures) -> dict[str, Any]:  # Any: of JSON
    """Figures as a JSON object; ``if_`` and ``while_`` are ``if`` and ``while`` there."""
    written: dict[str, Any] = {}  # Any: as above
    for field in fields(DeviceFigures):
        value = getattr(figures, field.name)
        if field.name in _TABLES:
            value = {getattr(key, "name", key): asdict(entry) for key, entry in value.items()}
        elif value is not None:
            value = asdict(value)
        written[field.name.rstrip("_")] = value
    return written


def figures_from(
    written: Mapping[str, Any], backend_id: BackendId
) -> DeviceFigures:  # Any: of JSON
    """The figures that `figures_fields` made an object of, checked.

    Raises KeyError, TypeError, AttributeError for other objects; BackendError for invalid figures.
    """
    read: dict[str, Any] = {}  # Any: by field
    for field in fields(DeviceFigures):
        value = written[field.name.rstrip("_")]
        if kind := _TABLES.get(field.name):
            value = {
                DataType[key] if kind is DataType else key: _pair_from(entry)
                for key, entry in value.items()
            }
        elif value:
            value = _pair_from(value)
        read[field.name] = value
    return check_figures(DeviceFigures(**read), backend_id)


def _pair_from(written: Mapping[str, Any]) -> PerformanceFigures:  # Any: of JSON
    return PerformanceFigures(written["exec_time"], written["power_usage"])
