"""Diagnoses faults of backends or a file, and prints them."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.doctor.diagnose import examine
from armpy.cli.doctor.diagnose_model import ModelExamination, examine_model
from armpy.cli.doctor.report import print_compiled, print_installation, print_model
from armpy.cli.inspect.examine_file import FileExamination, examine_file
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import print_json, stdout_kept
from armpy.cli.settings import CommandSettings
from armpy.model.load_request import begins_prepared
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.store.archive.signing import trusted_keys as read_keys


def doctor(
    context: click.Context,
    file: str | None,
    front_end: str | None,
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
    if file is None and (trusted_keys or code != "trusted" or front_end is not None):
        raise click.UsageError("--front-end, --trusted-key and --code go with a FILE")
    with settings.without_reasons():
        if file is None:
            examination = examine(options)
            is_well = not examination.num_problems
            if as_json:
                print_json(asdict(examination) | {"num_problems": examination.num_problems})
            else:
                is_full = settings.debug or settings.verbosity > 0
                print_installation(examination, with_tracebacks=settings.debug, in_full=is_full)
        else:
            report: FileExamination | ModelExamination
            with stdout_kept():  # backends may print
                if begins_prepared(file):
                    if front_end is not None:
                        raise click.UsageError("--front-end goes with a FILE that is not compiled")
                    registry = BackendRegistry.discover(options)
                    report = examine_file(file, registry, read_keys(trusted_keys), code)
                else:
                    request = CliLoadRequest(file, dynamic_backends_path=dynamic_backends_path)
                    report = examine_model(request.with_options(front_end=front_end))
            is_well = report.is_ok
            if as_json:
                print_json(asdict(report) | {"is_ok": is_well})
            elif isinstance(report, FileExamination):
                print_compiled(report)
            else:
                print_model(report)
    if not is_well:
        context.exit(EXIT_PROBLEMS)
