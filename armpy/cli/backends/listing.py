"""Lists what says of itself that it is a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from armpy.cli.printer import Printer
from armpy.errors import ArmpyError
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, SkippedPath
from armpy.plugins.proxy.guard import BackendProxy

_USABLE = (CandidateStatus.FOUND.value, CandidateStatus.REGISTERED.value)


@dataclass(frozen=True, slots=True)
class BackendReport:
    """One candidate.

    Parameters
    ----------
    id : str
        Empty for a directory's module that was not loaded.
    name, kind, source, status : str
    version : str
        The backend's own; its distribution's while it is not loaded.
    api_version, device_type : str
        Empty for one that was not loaded.
    reason : str
        Why it cannot be used, or what is wrong with it all the same.
    """

    id: str
    name: str
    kind: str
    source: str
    status: str
    version: str = ""
    api_version: str = ""
    device_type: str = ""
    reason: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether it is loaded, or nothing speaks against that."""
        return self.status in _USABLE

    @property
    def label(self) -> str:
        """Its id, or the module's name while that is not known."""
        return self.id or f"({self.name})"


def list_backends(registry: BackendRegistry, *, load: bool = False) -> list[BackendReport]:
    """Describe every candidate of a registry.

    Parameters
    ----------
    registry : BackendRegistry
    load : bool
        Load each backend to see whether it can be used. Without it none is imported.
    """
    if load:
        registry.available()
    return [_report(registry, candidate) for candidate in registry.candidates]


def _report(registry: BackendRegistry, candidate: Candidate) -> BackendReport:
    """Describe one candidate."""
    return BackendReport(
        candidate.backend_id,
        candidate.name,
        candidate.kind.value,
        candidate.source,
        candidate.status.value,
        _version(registry, candidate),
        candidate.api_version,
        candidate.device_type,
        candidate.reason,
    )


def _version(registry: BackendRegistry, candidate: Candidate) -> str:
    """The version of a backend, or of what brings it."""
    if candidate.status is not CandidateStatus.REGISTERED:
        return candidate.distribution_version
    try:
        return BackendProxy(registry.get(candidate.backend_id)).version
    except ArmpyError:  # what is wrong with it, loading it for a network tells
        return candidate.distribution_version


def print_backends(
    reports: Sequence[BackendReport],
    skipped: Sequence[SkippedPath] = (),
    *,
    with_rejected: bool = False,
) -> None:
    """Print a table of backends.

    Parameters
    ----------
    reports : sequence of BackendReport
    skipped : sequence of SkippedPath
    with_rejected : bool
        List also those that cannot be used, with the reasons.
    """
    printer = Printer()
    shown = [report for report in reports if with_rejected or report.is_usable]
    if shown:
        columns = ["id", "version", "API", "device", "status", "source", "reason"]
        end = None if with_rejected or any(report.reason for report in shown) else -1
        printer.table(columns[:end], [_row(report)[:end] for report in shown])
    else:
        printer.line("no backend can be used" if reports else "no backend is installed")
    if with_rejected and skipped:
        printer.heading("Skipped")
        printer.table(["path", "reason"], [(path.path, path.reason) for path in skipped])
    elif left_out := len(reports) - len(shown) + len(skipped):
        printer.line(f"left out: {left_out} (armpy backends --all says why)")


def _row(report: BackendReport) -> tuple[str, ...]:
    """One line of the table."""
    return (
        report.label,
        report.version,
        report.api_version,
        report.device_type,
        report.status,
        report.source,
        report.reason,
    )


def backends_document(
    reports: Sequence[BackendReport], skipped: Sequence[SkippedPath] = ()
) -> dict[str, object]:
    """Everything that was found as a JSON document."""
    return {
        "backends": [asdict(report) for report in reports],
        "skipped": [{"path": path.path, "reason": path.reason} for path in skipped],
    }
