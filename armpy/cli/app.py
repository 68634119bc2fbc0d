"""The commands and their options; the work is done in the modules named after them."""

from __future__ import annotations

import click

import armpy
from armpy.cli.options import verbosity_options
from armpy.cli.plugin_commands import PluginGroup


@click.group(
    cls=PluginGroup,
    elsewhere={
        "backends": "armpy.cli.backends.commands:backends",
        "benchmark": "armpy.cli.benchmark.command:benchmark_command",
        "cache": "armpy.cli.caches.commands:cache",
        "calibrate": "armpy.cli.backends.calibrate:calibrate",
        "compile": "armpy.cli.compile:compile_command",
        "conformance": "armpy.cli.conformance.command:conformance",
        "demo": "armpy.cli.demo:demo",
        "diff": "armpy.cli.diff:diff",
        "doctor": "armpy.cli.backends.commands:doctor",
        "inspect": "armpy.cli.inspect.command:inspect",
        "keys": "armpy.cli.keys:keys",
        "new-backend": "armpy.cli.backends.commands:new_backend",
        "profile": "armpy.cli.profile.commands:profile",
        "quantize": "armpy.cli.quantize.command:quantize",
        "run": "armpy.cli.run.command:run",
        "report": "armpy.cli.report_command:report",
        "tune": "armpy.cli.backends.tune:tune",
    },
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(armpy.__version__, prog_name="armpy", message="%(prog)s %(version)s")
@verbosity_options
@click.pass_context
def app(context: click.Context) -> None:
    """Run neural networks on whatever accelerators are installed.

    Exit codes: 0 done, 1 failed, 2 the command line cannot be followed.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)
