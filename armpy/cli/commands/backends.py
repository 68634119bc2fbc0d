"""``armpy backends``: lists the backends that are installed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from armpy.cli.options import dynamic_backends_option, report_options
from armpy.cli.printer import Printer, print_json
from armpy.cli.settings import CommandSettings
from armpy.core.dataclass import dataclass
from armpy.plugins import BackendRegistry, CandidateStatus, PluginOptions, SkippedPath

_USABLE = (CandidateStatus.FOUND.value, CandidateStatus.REGISTERED.value)

_WORDS = {
    CandidateStatus.FOUND.value: "installed, not tried",
    CandidateStatus.REGISTERED.value: "can be used",
    CandidateStatus.DUPLICATE.value: "hidden by one of the same id",
    CandidateStatus.REJECTED.value: "breaks the contract",
    CandidateStatus.FAILED.value: "cannot be loaded",
    CandidateStatus.CRASHED.value: "crashes",
    CandidateStatus.HUNG.value: "hangs",
}
"""What states mean, for people."""


@dataclass(frozen=True, slots=True)
class BackendReport:
    """One candidate."""

    id: str  # empty for a directory's module that was not loaded
    name: str
    kind: str
    source: str
    status: str
    version: str  # of its distribution
    reason: str  # why it cannot be used, or its fault


@click.command("backends")
@click.option("--all", "shows_all", is_flag=True, help="List also what cannot be used, and why.")
@dynamic_backends_option
@report_options
@click.pass_obj
def command(
    settings: CommandSettings,
    shows_all: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the backends that are installed.

    None is imported: 'armpy doctor' tries each, 'armpy devices' shows what they run on.
    """
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
    with settings.without_reasons():
        registry = BackendRegistry.discover(options)
        reports = list_backends(registry)
    if as_json:
        print_json({"backends": reports, "skipped": registry.skipped_paths})
    else:
        print_backends(reports, registry.skipped_paths, shows_all=shows_all)


def list_backends(registry: BackendRegistry) -> list[BackendReport]:
    """Describe every candidate of a registry."""
    return [
        BackendReport(
            candidate.backend_id,
            candidate.name,
            candidate.kind.value,
            candidate.source,
            candidate.status.value,
            candidate.distribution_version,
            candidate.reason,
        )
        for candidate in registry.candidates
    ]


def print_backends(
    reports: Sequence[BackendReport],
    skipped: Sequence[SkippedPath] = (),
    *,
    shows_all: bool = False,
) -> None:
    """Print a table of backends; those that cannot be used, with the reasons, if asked for."""
    printer = Printer()
    shown = [report for report in reports if shows_all or report.status in _USABLE]
    if shown:
        columns = ["id", "version", "status", "source", "reason"]
        end = None if shows_all or any(report.reason for report in shown) else -1
        rows = [
            (
                report.id or f"({report.name})",
                report.version,
                _WORDS[report.status],
                report.source,
                report.reason,
            )
            for report in shown
        ]
        printer.table(columns[:end], [row[:end] for row in rows])
    else:
        printer.line("no backend can be used" if reports else "no backend is installed")
    for path in skipped:
        printer.line(f"skipped {path.path}: {path.reason}")
    if any(report.status == CandidateStatus.FOUND.value for report in shown):
        printer.line("armpy doctor tries whether they can be used on this machine")
    if left_out := len(reports) - len(shown):
        printer.line(f"left out: {left_out} (armpy backends --all says why)")
