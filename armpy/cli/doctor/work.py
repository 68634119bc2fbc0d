"""Finds out what is wrong with backends or a file, and says it."""

from __future__ import annotations

import click

from armpy.cli.doctor.diagnose import examine
from armpy.cli.doctor.diagnose_file import examine_file
from armpy.cli.doctor.report import (
    doctor_document,
    file_document,
    print_examination,
    print_file_examination,
)
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import print_json, stdout_kept
from armpy.cli.settings import CommandSettings
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.store.archive.signing import trusted_keys


def doctor(
    context: click.Context,
    file: str | None,
    trusted_keys: tuple[str, ...],
    code: str,
    dynamic_backends_path: tuple[str, ...],
    probe_timeout: float,
    as_json: bool,
) -> None:
    """Load each backend in a process of its own, run small networks on it, and say what to do."""
    options = PluginOptions(
        dynamic_backends_path=dynamic_backends_path, probe_timeout_s=probe_timeout
    )
    settings = context.ensure_object(CommandSettings)
    if file is None and (trusted_keys or code != "trusted"):
        raise click.UsageError("--trusted-key and --code go with a FILE")
    with settings.without_reasons():
        if file is None:
            is_well = _examine_backends(options, as_json=as_json, with_tracebacks=settings.debug)
        else:
            is_well = _examine_file(file, options, trusted_keys, code, as_json=as_json)
    if not is_well:
        context.exit(EXIT_PROBLEMS)


def _examine_backends(options: PluginOptions, *, as_json: bool, with_tracebacks: bool) -> bool:
    """Say what is wrong with backends and plugins; whether nothing is."""
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
    with stdout_kept():  # backends may print
        registry = BackendRegistry.discover(options)
        examination = examine_file(file, registry, trusted_keys(keys), code)
    if as_json:
        print_json(file_document(examination))
    else:
        print_file_examination(examination)
    return examination.is_ok
