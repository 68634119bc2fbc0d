"""Hooks of the conformance kit: the commands for authors of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """``armpy conformance`` and ``armpy new-backend``."""
    # Imported with click, which only the command line has.
    from armpy_conformance.cli.conformance.command import command as conformance  # noqa: PLC0415
    from armpy_conformance.cli.new_backend.command import command as new  # noqa: PLC0415

    return [conformance, new]
