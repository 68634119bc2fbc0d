"""Options of ``armpy devices``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import dynamic_backends_option, report_options


@click.command("devices")
@dynamic_backends_option
@report_options
@imported_when_run("armpy.cli.devices.work:devices")
def command() -> None:
    """List the devices of all backends: type, version, figures, cache files.

    Each backend is loaded.
    """
