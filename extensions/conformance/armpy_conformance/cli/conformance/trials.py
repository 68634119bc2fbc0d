"""The backends that are tried out, and a line about each at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol, TypeVar

import click

from armpy.cli.printer import Printer, print_json
from armpy.cli.registry import parse_backend_options, split_option
from armpy.errors import DeviceNotFoundError
from armpy.execution import RuntimeOptions
from armpy.plugins import BackendRegistry, CandidateStatus, PluginOptions

ResultT = TypeVar("ResultT")


class TrialResult(Protocol):
    """Outcome of trying out one backend."""

    @property
    def is_passed(self) -> bool:
        """Return whether nothing is wrong."""

    def to_document(self) -> dict[str, object]:
        """Convert the result to the document of ``--json``."""


def runtime_options(
    dynamic_backends_path: tuple[str, ...], backend_options: tuple[str, ...]
) -> RuntimeOptions:
    """Return these options as the runtime's; a backend is only loaded here if it has options.

    Raises
    ------
    BackendUnavailableError
        If an option is for a backend that there is not.
    InvalidArgumentError
        If there is no such option, or its value is not allowed.
    """
    if not backend_options:
        return RuntimeOptions(dynamic_backends_path=dynamic_backends_path)
    pairs = [split_option(text) for text in backend_options]
    registry = BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))
    return RuntimeOptions(
        dynamic_backends_path=dynamic_backends_path,
        backend_options=parse_backend_options(registry, pairs),
    )


def backends_to_try(
    backend: str, every: bool, options: RuntimeOptions
) -> tuple[list[str], list[str]]:
    """Ids of the backends that are asked for; what of ``--all`` cannot be loaded, and why.

    Raises
    ------
    click.UsageError
        Unless either one backend is asked for or all.
    """
    if every == bool(backend):
        raise click.UsageError("Give the id of a backend, or --all for every one.")
    if not every:
        return [backend], []
    with closing(BackendRegistry.discover(options.plugin_options())) as registry:
        ids = [backend.get_id() for backend in registry.available()]
        # A duplicate yields to one that is tried.
        fine = (CandidateStatus.REGISTERED, CandidateStatus.DUPLICATE)
        unusable = [
            f"{candidate.label}: {candidate.reason}"
            for candidate in registry.candidates
            if candidate.status not in fine and not candidate.is_plugin
        ]
    return ids, unusable


def tried(
    ids: Sequence[str],
    every: bool,
    trial: Callable[[str], ResultT],
    # With --all, gets a line for each backend whose device is missing; none has failed.
    not_tried: list[str],
) -> Iterator[ResultT]:
    """Try out backends one by one; raises DeviceNotFoundError for one that is asked for alone."""
    for name in ids:
        try:
            result = trial(name)
        except DeviceNotFoundError as error:
            if not every:
                raise
            not_tried.append(str(error))
        else:
            yield result


def report_all(
    results: Sequence[TrialResult],
    unusable: Sequence[str],
    not_tried: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Show the outcome of each backend in one line; or everything as one document."""
    if as_json:
        documents = [result.to_document() for result in results]
        reasons = {"unusable": list(unusable), "not_tried": list(not_tried)}
        print_json({"backends": documents, **reasons})
        return
    printer = Printer()
    printer.heading("All backends")
    for result in results:
        printer.line(f"{'passed' if result.is_passed else 'FAILED'}  {result}")
    for line in unusable:
        printer.line(f"cannot be used  {line}")
    for line in not_tried:
        printer.line(f"not tried  {line}")
