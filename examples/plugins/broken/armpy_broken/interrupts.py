"""Gives up in its hook as if the user had pressed Ctrl-C."""

from __future__ import annotations

from armpy.plugins.hooks import hookimpl


@hookimpl
def armpy_register_front_end() -> None:
    """Raise what only the user should."""
    raise KeyboardInterrupt


@hookimpl
def armpy_configure_runtime() -> None:
    """Leave the process."""
    raise SystemExit(3)
