"""Options and helpers of all commands that try out a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from armpy.cli.options import dynamic_backends_option

if TYPE_CHECKING:
    from armpy.execution import RuntimeOptions

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

Command = TypeVar("Command", bound=Callable[..., object])

backend_option = click.option(
    "--backend", required=True, metavar="ID", help="The backend to try out."
)

filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="TEXT",
    help="Only cases with this text; may be repeated, for cases with any of them.",
)

every_option = click.option(
    "--all", "every", is_flag=True, help="Every backend that there is, one by one."
)


class Tried(Protocol):
    """Outcome of trying out one backend."""

    @property
    def is_passed(self) -> bool:
        """Whether nothing is wrong."""

    def to_document(self) -> dict[str, object]:
        """What ``--json`` prints."""


def trial_options(command: Command) -> Command:
    """Add the options that say where backends are, and what they are told."""
    command = click.option(
        "--backend-option",
        "backend_options",
        multiple=True,
        metavar="ID.NAME=VALUE",
        help="An option of the backend; may be repeated.",
    )(command)
    return dynamic_backends_option(command)


def runtime_options(
    dynamic_backends_path: tuple[str, ...], backend_options: tuple[str, ...]
) -> RuntimeOptions:
    """What these options come to; a backend is only loaded here if it is given options.

    Raises
    ------
    BackendUnavailableError
        If an option is for a backend that there is not.
    InvalidArgumentError
        If there is no such option, or its value is not allowed.
    """
    from armpy.cli.load_request import parse_backend_options, split_option
    from armpy.execution import RuntimeOptions

    if not backend_options:
        return RuntimeOptions(dynamic_backends_path=dynamic_backends_path)
    from armpy.plugins import BackendRegistry, PluginOptions

    given = [split_option(text) for text in backend_options]
    registry = BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))
    return RuntimeOptions(
        dynamic_backends_path=dynamic_backends_path,
        backend_options=parse_backend_options(registry, given),
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
    from armpy.plugins import BackendRegistry, CandidateStatus

    with closing(BackendRegistry.discover(options.plugin_options())) as registry:
        ids = [backend.get_id() for backend in registry.available()]
        # A duplicate stands back behind one that is tried.
        fine = (CandidateStatus.REGISTERED, CandidateStatus.DUPLICATE)
        unusable = [
            f"{candidate.label}: {candidate.reason}"
            for candidate in registry.candidates
            if candidate.status not in fine and not candidate.is_plugin
        ]
    return ids, unusable


def report_all(results: Sequence[Tried], unusable: Sequence[str], *, as_json: bool) -> None:
    """Show what came of all backends, one line each; or everything as one document."""
    from armpy.cli.printer import Printer, print_json

    if as_json:
        documents = [result.to_document() for result in results]
        print_json({"backends": documents, "unusable": list(unusable)})
        return
    printer = Printer()
    printer.heading("All backends")
    for result in results:
        printer.line(f"{'passed' if result.is_passed else 'FAILED'}  {result}")
    for line in unusable:
        printer.line(f"cannot be used  {line}")
