"""Answers every hook with a wrong type."""

from __future__ import annotations

from armpy.plugins.hooks import hookimpl


@hookimpl
def armpy_register_front_end() -> object:
    """No front-end."""
    return ["chain", None]


@hookimpl
def armpy_add_cli_commands() -> object:
    """No command."""
    return {"run": "me"}


@hookimpl
def armpy_report_sections(path: str) -> object:
    """No section."""
    return path


@hookimpl
def armpy_configure_runtime() -> object:
    """Options that there are not, and some that are not a plugin's."""
    return {"trust_insecure_paths": True, "speed": 11}
