"""What the commands that try out a backend have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from armpy.cli.options import dynamic_backends_option

if TYPE_CHECKING:
    from armpy.runtime import RuntimeOptions

Command = TypeVar("Command", bound=Callable[..., object])

backend_option = click.option(
    "--backend", required=True, metavar="ID", help="The backend to try out."
)


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
    from armpy.cli.load_request import parse_backend_options, split_option  # noqa: PLC0415
    from armpy.runtime import RuntimeOptions  # noqa: PLC0415

    if not backend_options:
        return RuntimeOptions(dynamic_backends_path=dynamic_backends_path)
    from armpy.plugins import BackendRegistry, PluginOptions  # noqa: PLC0415

    given = [split_option(text) for text in backend_options]
    registry = BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))
    return RuntimeOptions(
        dynamic_backends_path=dynamic_backends_path,
        backend_options=parse_backend_options(registry, given),
    )
