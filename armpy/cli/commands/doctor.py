"""``armpy doctor``: facts about an installation, and problems of backends and plugins."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.doctor.examine import NO_DEVICE, InstallationReport, examine
from armpy.cli.options import EXIT_PROBLEMS, dynamic_backends_option, report_options
from armpy.cli.printer import Printer, print_json
from armpy.cli.settings import CommandSettings
from armpy.cli.values import FiniteRange
from armpy.plugins import PluginOptions


@click.command("doctor")
@dynamic_backends_option
@click.option(
    "--probe-timeout",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True, max=3600),
    # More than for a Runtime: a backend may compile its first networks, beside other programs.
    default=30.0,
    show_default=True,
    help="How long each backend may take.",
)
@report_options
@click.pass_context
def command(
    context: click.Context,
    dynamic_backends_path: tuple[str, ...],
    probe_timeout: float,
    as_json: bool,
) -> None:
    """Show the installation: versions, caches, variables, and the state of every backend.

    Each backend and plugin is loaded in a process of its own, and each backend runs a small network
    whose answer is known. 'armpy inspect FILE' and 'armpy check FILE' are for model files.

    Exit code 0 if all is well, 1 if there is a problem. Devices that this machine lacks are listed,
    but are not problems.
    """
    options = PluginOptions(
        dynamic_backends_path=dynamic_backends_path, probe_timeout_s=probe_timeout
    )
    settings = context.ensure_object(CommandSettings)
    with settings.without_reasons():
        report = examine(options)
    if as_json:
        print_json(asdict(report) | {"num_problems": len(report.problems)})
    else:
        _print(report, with_tracebacks=settings.debug)
    if report.problems:
        context.exit(EXIT_PROBLEMS)


def _print(report: InstallationReport, *, with_tracebacks: bool) -> None:
    """Print the facts and states as tables, then the problems."""
    printer = Printer()
    printer.table(["fact", "value"], report.facts.items())
    for title, subjects in (("Backends", report.backends), ("Plugins", report.plugins)):
        if subjects:
            printer.heading(title)
            rows = [(s.name, s.version, s.state, s.api_version, s.source) for s in subjects]
            printer.table(["name", "version", "state", "API", "from"], rows)
    subjects = (*report.backends, *report.plugins)
    details = [(s.name, what, text) for s in subjects for what, text in s.details]
    if details:
        printer.heading("Details")
        printer.table(["of", "what", "is"], details)
    printer.line("")
    for subject in subjects:
        if subject.state == NO_DEVICE:
            printer.line(f"{subject.name}: {NO_DEVICE}: {subject.reason}")
    for problem in report.problems:
        printer.line(f"problem: {problem}")
    if with_tracebacks:
        for subject in subjects:
            for line in subject.traceback.splitlines():
                printer.line(f"{subject.name} | {line}")
    printer.line(f"problems: {len(report.problems)}")
