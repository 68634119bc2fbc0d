"""Checks of figures that backends declare, or that come from a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
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

    Returns
    -------
    DeviceFigures
        Equal to `figures`, made of plain floats and dicts.

    Raises
    ------
    BackendError
        If a figure is no number, is not above 0 or not finite, or a key is of another kind.
    """
    where = f"{backend_id} / get_devices"
    if not isinstance(figures, DeviceFigures):
        raise wrong_type("the set of figures", DeviceFigures, figures, where)
    plain: dict[str, Any] = {}  # Any: by field
    for each in fields(DeviceFigures):
        value, name = getattr(figures, each.name), each.name
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
    return PerformanceFigures(
        check_figure(figures.exec_time, f"{name}.exec_time", where),
        check_figure(figures.power_usage, f"{name}.power_usage", where),
    )


def check_figure(figure: object, name: str, where: str) -> float:
    """One figure, checked.

    Raises
    ------
    BackendError
        If it is no number above 0 and below a thousand million.
    """
    # True is an int to `isinstance`, and no figure.
    is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
    if not (is_number and math.isfinite(figure) and 0 < figure < _LARGEST):  # type: ignore[arg-type,operator]  # checked first
        raise BackendError(
            f"{name} is no figure",
            where=where,
            expected="a finite number above 0",
            actual=repr(figure)[:80],
        )
    return float(figure)  # type: ignore[arg-type]  # as above
