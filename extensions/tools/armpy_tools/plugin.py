"""The plugin through which `armpy` finds the commands of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """``armpy benchmark``, ``calibrate``, ``diff``, ``pictures``, ``quantize`` and ``report``.

    ``armpy conformance`` gets ``accuracy`` and ``page``.
    """
    # Imported with click, which only the command line has.
    from armpy_tools.cli.benchmark.command import command as benchmark  # noqa: PLC0415
    from armpy_tools.cli.calibrate.command import command as calibrate  # noqa: PLC0415
    from armpy_tools.cli.conformance.commands import accuracy, page  # noqa: PLC0415
    from armpy_tools.cli.diff.command import command as diff  # noqa: PLC0415
    from armpy_tools.cli.pictures.command import command as pictures  # noqa: PLC0415
    from armpy_tools.cli.quantize.command import command as quantize  # noqa: PLC0415
    from armpy_tools.cli.report.command import command as report  # noqa: PLC0415

    return [benchmark, calibrate, accuracy, page, diff, pictures, quantize, report]
