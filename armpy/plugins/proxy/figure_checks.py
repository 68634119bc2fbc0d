"""Checks of figures that backends declare, or that come from a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.errors import BackendError
from armpy.types import BackendId, DataType

KeyT = TypeVar("KeyT")

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
        raise BackendError(
            "the figures are of the wrong type",
            where=where,
            expected="DeviceFigures",
            actual=type(figures).__name__,
        )
    return DeviceFigures(
        _checked_table(figures.tensors, DataType, "tensors", where),
        _checked_table(figures.scalars, DataType, "scalars", where),
        _checked_table(figures.extensions, str, "extensions", where),
        *(
            _checked(getattr(figures, name), name, where)
            for name in ("relaxed_tensor", "relaxed_scalar", "if_", "while_")
        ),
    )


def _checked_table(
    table: object, kind: type[KeyT], name: str, where: str
) -> dict[KeyT, PerformanceFigures]:
    """A table of figures, checked."""
    if not isinstance(table, Mapping):
        raise BackendError(f"{name} is no mapping", where=where, actual=type(table).__name__)
    checked = {}
    for key, figures in table.items():
        if not isinstance(key, kind):
            raise BackendError(
                f"a key of {name} is of the wrong type",
                where=where,
                expected=kind.__name__,
                actual=type(key).__name__,
            )
        answer = _checked(figures, f"{name}[{key}]", where)
        if answer is not None:
            checked[key] = answer
    return checked


def _checked(figures: object, name: str, where: str) -> PerformanceFigures | None:
    """Two figures, checked; None if there are none."""
    if figures is None:
        return None
    if not isinstance(figures, PerformanceFigures):
        raise BackendError(
            f"{name} is of the wrong type",
            where=where,
            expected="PerformanceFigures",
            actual=type(figures).__name__,
        )
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
