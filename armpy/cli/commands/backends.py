"""The commands about backends: listed, measured, tuned, begun anew."""

from __future__ import annotations

from collections.abc import Sequence

import click

from armpy.cli.options import dynamic_backends_option, report_options
from armpy.cli.printer import Printer, print_json
from armpy.cli.settings import CommandSettings
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, PluginOptions, SkippedPath
from armpy.plugins.proxy.availability import find_unavailability, shortened
from armpy.plugins.proxy.guard import BackendProxy

_USABLE = (CandidateStatus.FOUND.value, CandidateStatus.REGISTERED.value)

_UNAVAILABLE = "unavailable"
"""State of a backend that is loaded, and whose device or driver is not on this machine."""

_WORDS = {
    CandidateStatus.FOUND.value: "installed, not tried",
    CandidateStatus.REGISTERED.value: "can be used",
    CandidateStatus.DUPLICATE.value: "hidden by one of the same id",
    CandidateStatus.REJECTED.value: "breaks the contract",
    CandidateStatus.FAILED.value: "cannot be loaded",
    CandidateStatus.CRASHED.value: "crashes",
    CandidateStatus.HUNG.value: "hangs",
    _UNAVAILABLE: "cannot be used here",
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
    version: str = ""  # the backend's own; its distribution's while it is not loaded
    # Empty for one that was not loaded.
    api_version: str = ""
    device_type: str = ""
    reason: str = ""  # why it cannot be used, or its fault


@click.command("backends")
@click.option(
    "--all", "shows_all", is_flag=True, help="List also what cannot be used; with --load, why."
)
@click.option(
    "--load", is_flag=True, help="Load each backend, after a test import in a separate process."
)
@dynamic_backends_option
@report_options
@click.pass_obj
def command(
    settings: CommandSettings,
    shows_all: bool,
    load: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the backends that are installed.

    None is imported unless --load is given; 'armpy devices' shows what they run on.
    """
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path, probe=load)
    with settings.without_reasons():
        registry = BackendRegistry.discover(options)
        reports = list_backends(registry, load=load)
    if as_json:
        print_json({"backends": reports, "skipped": registry.skipped_paths})
    else:
        print_backends(reports, registry.skipped_paths, shows_all=shows_all, load=load)


def list_backends(registry: BackendRegistry, *, load: bool = False) -> list[BackendReport]:
    """Describe every candidate of a registry; `load` loads each one to check it first."""
    if load:
        registry.available()
    reports = []
    for candidate in registry.candidates:
        status, reason = candidate.status.value, candidate.reason
        if load and candidate.status is CandidateStatus.REGISTERED:
            error = find_unavailability(BackendProxy(registry.get(candidate.backend_id)))
            if error is not None:
                status, reason = _UNAVAILABLE, shortened(error)
        report = BackendReport(
            candidate.backend_id,
            candidate.name,
            candidate.kind.value,
            candidate.source,
            status,
            _version(registry, candidate),
            candidate.api_version,
            candidate.device_type,
            reason,
        )
        reports.append(report)
    return reports


def _version(registry: BackendRegistry, candidate: Candidate) -> str:
    """The version of a backend, or of what brings it."""
    if candidate.status is not CandidateStatus.REGISTERED:
        return candidate.distribution_version
    try:
        return BackendProxy(registry.get(candidate.backend_id)).version
    except ArmpyError:  # loading it for a network reports the error
        return candidate.distribution_version


def print_backends(
    reports: Sequence[BackendReport],
    skipped: Sequence[SkippedPath] = (),
    *,
    shows_all: bool = False,
    load: bool = False,
) -> None:
    """Print a table of backends; those that cannot be used, with the reasons, if asked for."""
    printer = Printer()
    shown = [report for report in reports if shows_all or report.status in _USABLE]
    if shown:
        columns = ["id", "version", "API", "device", "status", "source", "reason"]
        end = None if shows_all or any(report.reason for report in shown) else -1
        rows = [
            (
                report.id or f"({report.name})",
                report.version,
                report.api_version,
                report.device_type,
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
        printer.line("armpy backends --load tries whether they can be used on this machine")
    if left_out := len(reports) - len(shown):
        # Most reasons are found by loading.
        command = "armpy backends --all --load" if load else "armpy backends --all"
        printer.line(f"left out: {left_out} ({command} says why)")
