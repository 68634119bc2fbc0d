"""The commands ``armpy kernels`` and ``armpy tune``, which are about what NumbaAcc compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """``armpy kernels`` and ``armpy tune``."""
    # Imported with click, which only the command line has.
    from armpy_numba_acc.commands.kernels_options import command as kernels  # noqa: PLC0415
    from armpy_numba_acc.commands.tune_options import command as tune  # noqa: PLC0415

    return [kernels, tune]
