"""The commands about backends: which there are, what is wrong with them, and a new one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.options import (
    EXIT_PROBLEMS,
    MODEL_FILE,
    dynamic_backends_option,
    json_option,
    trust_options,
    verbosity_options,
)
from armpy.cli.settings import CommandSettings
from armpy.cli.values import FiniteRange

if TYPE_CHECKING:
    from armpy.plugins import PluginOptions

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415


@click.command(short_help="List the backends that are installed.")
@click.option(
    "--all", "with_rejected", is_flag=True, help="List also what cannot be used, and why."
)
@click.option(
    "--load", is_flag=True, help="Load each backend, after a trial in a process of its own."
)
@click.option(
    "--capabilities",
    is_flag=True,
    help="Load each backend, and show its device: type, version, figures, cache files.",
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_obj
def backends(
    settings: CommandSettings,
    with_rejected: bool,
    load: bool,
    capabilities: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the backends that are installed.

    None is imported unless --load or --capabilities is given.
    """
    from armpy.cli.backends.listing import backends_document, list_backends, print_backends
    from armpy.cli.printer import print_json
    from armpy.plugins import BackendRegistry, PluginOptions

    options = PluginOptions(dynamic_backends_path=dynamic_backends_path, probe=load)
    if capabilities:
        from armpy.cli.backends.device_tables import devices_document, list_devices, print_devices

        devices = list_devices(BackendRegistry.discover(options))
        if as_json:
            print_json(devices_document(devices))
        else:
            print_devices(devices)
        return
    with _reasons_told_once(settings):
        registry = BackendRegistry.discover(options)
        found = list_backends(registry, load=load)
    if as_json:
        print_json(backends_document(found, registry.skipped_paths))
    else:
        print_backends(found, registry.skipped_paths, with_rejected=with_rejected)


@click.command(short_help="Find out what is wrong with backends or a file, and what to do.")
@click.argument("file", type=MODEL_FILE, required=False)
@trust_options
@dynamic_backends_option
@click.option(
    "--probe-timeout",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True, max=3600),
    default=10.0,  # as for a Runtime; a backend that compiles takes seconds the first time
    show_default=True,
    help="How long each backend may take.",
)
@json_option
@verbosity_options
@click.pass_context
def doctor(
    context: click.Context,
    file: str | None,
    trusted_keys: tuple[str, ...],
    code: str,
    dynamic_backends_path: tuple[str, ...],
    probe_timeout: float,
    as_json: bool,
) -> None:
    """Load each backend in a process of its own, run small networks on it, and say what to do.

    With a prepared FILE, say instead what of it would be used here, and why the rest would not.

    Exit code 0 if all is well, 1 if there is a problem.
    """
    from armpy.plugins import PluginOptions

    options = PluginOptions(
        dynamic_backends_path=dynamic_backends_path, probe_timeout_s=probe_timeout
    )
    settings = context.ensure_object(CommandSettings)
    if file is None and (trusted_keys or code != "trusted"):
        raise click.UsageError("--trusted-key and --code go with a FILE")
    with _reasons_told_once(settings):
        if file is None:
            is_well = _examine_backends(options, as_json=as_json, with_tracebacks=settings.debug)
        else:
            is_well = _examine_file(file, options, trusted_keys, code, as_json=as_json)
    if not is_well:
        context.exit(EXIT_PROBLEMS)


def _examine_backends(options: PluginOptions, *, as_json: bool, with_tracebacks: bool) -> bool:
    """Say what is wrong with backends and plugins; whether nothing is."""
    from armpy.cli.doctor.diagnose import examine
    from armpy.cli.doctor.report import doctor_document, print_examination
    from armpy.cli.printer import print_json

    examination = examine(options)
    if as_json:
        print_json(doctor_document(examination))
    else:
        print_examination(examination, with_tracebacks=with_tracebacks)
    return not examination.num_problems


def _examine_file(
    file: str, options: PluginOptions, keys: tuple[str, ...], code: str, *, as_json: bool
) -> bool:
    """Say what of a prepared file would be used; whether all that can be is."""
    from armpy.cli.doctor.diagnose_file import examine_file
    from armpy.cli.doctor.report import file_document, print_file_examination
    from armpy.cli.printer import print_json, stdout_kept
    from armpy.plugins import BackendRegistry
    from armpy.store.archive.signing import trusted_keys

    with stdout_kept():  # backends may print
        registry = BackendRegistry.discover(options)
        examination = examine_file(file, registry, trusted_keys(keys), code)
    if as_json:
        print_json(file_document(examination))
    else:
        print_file_examination(examination)
    return examination.is_ok


@click.command("new-backend", short_help="Write the project of a new backend.")
@click.argument("vendor")
@click.argument("name")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option(
    "--style",
    type=click.Choice(["workloads", "compiler"]),
    default="workloads",
    show_default=True,
    help="Run layers one by one, or compile subgraphs.",
)
@verbosity_options
def new_backend(vendor: str, name: str, folder: str | None, style: str) -> None:
    """Write the project of a backend named <VENDOR>_<NAME>_backend to DIR.

    It passes its own tests at once. DIR is vendor-name-backend if left out.
    """
    import shlex

    from armpy.cli.backends.new_backend import BackendName, write_project

    names = BackendName(vendor, name)
    target = Path(folder or names.distribution)
    files = write_project(names, style, target)
    click.echo(f"written: {len(files)} files of the backend '{names.backend_id}' to {target}")
    click.echo("next:")
    click.echo(f"  cd {shlex.quote(str(target))}")
    click.echo("  pip install -e '.[test]'")
    click.echo("  pytest")


@contextmanager
def _reasons_told_once(settings: CommandSettings) -> Iterator[None]:
    """Keep what the command itself tells out of the log, unless more was asked for."""
    logger = logging.getLogger("armpy.plugins")
    before = logger.level
    if not settings.verbosity:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
