"""The commands about what backends keep on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from armpy.cli.options import (
    EXIT_PROBLEMS,
    backends_option,
    dynamic_backends_option,
    json_option,
    verbosity_options,
)
from armpy.cli.strict_options import OnceGroup

if TYPE_CHECKING:
    from armpy.plugins import BackendRegistry

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415


@click.group(
    cls=OnceGroup, short_help="Look at what backends keep on disk, check it, or delete it."
)
def cache() -> None:
    """Look at what backends keep on disk, check it, or delete it.

    It can all be made again; deleting it costs time only.
    """


def _of_backends(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options that say whose caches; they come as a registry and ids."""

    @wraps(command)
    def gathered(
        backends: tuple[str, ...] | None,
        dynamic_backends_path: tuple[str, ...],
        **others: Any,  # Any: of the command's own options
    ) -> object:
        from armpy.plugins import BackendRegistry, PluginOptions

        options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
        return command(BackendRegistry.discover(options), backends, **others)

    ids = backends_option("Ids; all installed ones if left out.")
    return ids(dynamic_backends_option(json_option(verbosity_options(gathered))))


_MODELS = click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="Only of this model, as 'armpy cache list' calls it, or of all like 'mobilenet*'; may be "
    "repeated.",
)


@cache.command("list", short_help="List what is kept, a row per model.")
@_of_backends
@_MODELS
@click.option(
    "--files", "--all", "shows_all", is_flag=True, help="A row for every file, not every model."
)
def list_command(
    registry: BackendRegistry,
    backends: tuple[str, ...] | None,
    as_json: bool,
    models: tuple[str, ...],
    shows_all: bool,
) -> None:
    """List what is kept, the last used first: a row per model with what it is kept for."""
    from armpy.cli.caches.caches import caches_document, list_caches, of_models, print_caches
    from armpy.cli.printer import print_json

    reports = of_models(list_caches(registry, backends), models)
    if as_json:
        print_json(caches_document(reports))
    else:
        print_caches(reports, shows_all=shows_all)


@cache.command(short_help="Check everything that is kept.")
@_of_backends
@click.pass_context
def verify(
    context: click.Context,
    registry: BackendRegistry,
    backends: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    """Check everything that is kept.

    Exit code 0 if all is sound, 1 if something is damaged or not the user's own.
    """
    from armpy.cli.caches.caches import caches_document, list_caches, print_verified
    from armpy.cli.printer import print_json

    reports = list_caches(registry, backends, verify=True)
    if as_json:
        print_json(caches_document(reports))
    else:
        print_verified(reports)
    if any(report.damaged for report in reports):
        context.exit(EXIT_PROBLEMS)


@cache.command(short_help="Delete what is kept: all of it, or of some models.")
@_of_backends
@_MODELS
def clear(
    registry: BackendRegistry,
    backends: tuple[str, ...] | None,
    as_json: bool,
    models: tuple[str, ...],
) -> None:
    """Delete everything that is kept, or what is kept of some models.

    What models share, compiled kernels above all, goes only with everything.
    """
    from armpy.cli.caches.caches import clear_caches, forget_models
    from armpy.cli.printer import print_json

    if models:
        cleared = forget_models(registry, backends, models)
    else:
        cleared = [(*each, 0) for each in clear_caches(registry, backends)]
    if as_json:
        fields = ("backend", "name", "deleted", "left")
        print_json({"caches": [dict(zip(fields, each, strict=True)) for each in cleared]})
        return
    for backend_id, name, count, num_left in cleared:
        left = f"; {num_left} left, as it can only be cleared as a whole" if num_left else ""
        click.echo(f"{backend_id} {name}: {count} deleted{left}")
