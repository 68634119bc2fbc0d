"""The plugin through which `armpy` finds this extension's command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """``armpy try``."""
    # Imported with click, which only the command line has.
    from armpy_compat.cli.try_program.command import command  # noqa: PLC0415

    return [command]
