"""The plugin through which `armpy` finds this extension's commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """The commands export-triton, ray-resources and check-server."""
    from armpy_serving.commands import (  # noqa: PLC0415 - need click
        check_server,
        export_triton,
        ray_resources,
    )

    return [export_triton.command, ray_resources.command, check_server.command]
