"""Leaves the process in its hooks."""

from __future__ import annotations

from armpy.plugins.hooks import hookimpl


@hookimpl
def armpy_register_front_end() -> None:
    """Leave the process."""
    raise SystemExit(3)


@hookimpl
def armpy_configure_runtime() -> None:
    """Leave the process, too."""
    raise SystemExit(3)
