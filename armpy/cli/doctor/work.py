"""Diagnoses faults of backends or a file, and prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from armpy.cli.doctor.diagnose import NO_DEVICE, Diagnosis, Examination, examine
from armpy.cli.doctor.diagnose_file import FileExamination, examine_file
from armpy.cli.doctor.diagnose_model import ModelExamination, examine_model
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import Printer, print_json, stdout_kept
from armpy.cli.settings import CommandSettings
from armpy.model.load_request import begins_prepared
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.store.archive.signing import trusted_keys as read_keys


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
            examination = examine(options)
            is_well = not examination.num_problems
            if as_json:
                print_json(asdict(examination) | {"num_problems": examination.num_problems})
            else:
                _print(examination, with_tracebacks=settings.debug)
        else:
            with stdout_kept():  # backends may print
                registry = BackendRegistry.discover(options)
                report = (
                    examine_file(file, registry, read_keys(trusted_keys), code)
                    if begins_prepared(file)
                    else examine_model(file, registry)
                )
            is_well = report.is_ok
            if as_json:
                print_json(asdict(report) | {"is_ok": is_well})
            elif isinstance(report, FileExamination):
                _print_file(report)
            else:
                _print_model(report)
    if not is_well:
        context.exit(EXIT_PROBLEMS)


def _print(examination: Examination, *, with_tracebacks: bool) -> None:
    """Print an examination; with tracebacks, also what candidates raised and wrote."""
    printer = Printer()
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    if examination.cache_problem:
        printer.line(f"cache: {examination.cache_problem}")
    for path in examination.bad_directories:
        printer.line(f"cannot look into {path.path}: {path.reason}")
    for path in examination.skipped:
        printer.line(f"skipped {path.path}: {path.reason}")
    for diagnosis in (*examination.candidates, *examination.plugins):
        if diagnosis.status == NO_DEVICE:
            continue
        name = " ".join(filter(None, (diagnosis.id or diagnosis.name, diagnosis.version)))
        name = f"plugin {name}" if diagnosis in examination.plugins else name
        printer.heading(f"{name}: {diagnosis.status}")
        for line in _lines(diagnosis):
            printer.line(f"  {line}")
        if with_tracebacks:
            for line in (diagnosis.traceback or diagnosis.output).splitlines():
                printer.line(f"  | {line}")
    printer.line("")
    for diagnosis in examination.candidates:
        if diagnosis.status == NO_DEVICE:
            printer.line(f"{diagnosis.id}: {NO_DEVICE}: {diagnosis.cause}")
    count = len(examination.candidates)
    plugins = f", plugins: {len(examination.plugins)}" if examination.plugins else ""
    printer.line(f"candidates: {count}{plugins}, problems: {examination.num_problems}")


def _print_file(examination: FileExamination) -> None:
    """Print the description of a compiled model."""
    printer = Printer()
    printer.heading(examination.path)
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    outcome = "used" if examination.uses_code else "not used"
    if examination.is_refused:
        outcome = "refused, and the file with it"
    printer.line(f"code: {outcome}: {examination.trust}")
    printer.line(f"contents: {examination.damage or 'sound'}")
    for program in examination.programs:
        reason = f": {program.reason}" if program.reason else ""
        printer.line(
            f"program of {program.backend_id} for {program.target}, "
            f"{program.size_bytes} bytes: {program.status}{reason}"
        )
    if examination.unprepared:
        printer.line(f"parts to be prepared anew: {examination.unprepared}")
    if examination.remedy:
        printer.line(f"to do: {examination.remedy}")


def _print_model(examination: ModelExamination) -> None:
    """Print the description of a model file that is not compiled."""
    printer = Printer()
    printer.heading(examination.path)
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    printer.line(f"contents: {examination.damage or 'sound'}")


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"found: {diagnosis.source}"
    if diagnosis.cause:
        yield f"cause: {diagnosis.cause}"
    if diagnosis.missing:
        yield f"missing: {diagnosis.missing}"
    if diagnosis.remedy:
        yield f"to do: {diagnosis.remedy}"
    if diagnosis.api_version:
        yield f"API version: {diagnosis.api_version}"
    if diagnosis.device_type:
        yield f"device: {diagnosis.device_type}"
    details = diagnosis.details
    for option in details.get("options", ()):
        yield (
            f"option {option['name']} ({option['scope']}, {option['allowed']}, "
            f"default {option['default']!r}): {option['help']}"
        )
    if details.get("capabilities"):
        shown = (k if v is True else f"{k}={v}" for k, v in details["capabilities"].items())
        yield f"capabilities: {', '.join(shown)}"
    if details.get("extensions"):
        yield f"extensions: {', '.join(details['extensions'])}"
    for front_end in details.get("front_ends", ()):
        missing = f", needs {', '.join(front_end['missing'])}" if front_end["missing"] else ""
        install = f": {front_end['install']}" if missing and front_end["install"] else ""
        suffixes = ", ".join(front_end["suffixes"]) or "no suffix"
        yield f"front-end {front_end['name']}: {front_end['title']} ({suffixes}){missing}{install}"
    if details.get("commands"):
        yield f"commands: {', '.join(details['commands'])}"
    if details.get("hooks"):
        yield f"hooks: {', '.join(details['hooks'])}"
    for trial in details.get("trials", ()):
        yield f"trial: {trial['operation']} {trial['text']}"
