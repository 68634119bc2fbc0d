# SPDX-License-Identifier: Apache-2.0
"""Prints what the doctor found, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from armpy.cli.doctor.diagnose import NO_DEVICE, Diagnosis, Examination, examine
from armpy.cli.printer import Printer
from armpy.plugins import PluginOptions

if TYPE_CHECKING:
    from armpy.cli.doctor.diagnose_model import ModelExamination
    from armpy.cli.inspect.examine_file import FileExamination


def examine_and_print() -> None:
    """Examine the installation where the libraries of the command line are missing."""
    print_installation(examine(PluginOptions()), with_tracebacks=False)


def print_installation(examination: Examination, *, with_tracebacks: bool) -> None:
    """Print an examination; with tracebacks, also what candidates raised and wrote."""
    printer = Printer()
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    for line in _surroundings(examination):
        printer.line(line)
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
            printer.line(f"{diagnosis.id or diagnosis.source}: {NO_DEVICE}: {diagnosis.cause}")
    count = len(examination.candidates)
    plugins = f", plugins: {len(examination.plugins)}" if examination.plugins else ""
    printer.line(f"candidates: {count}{plugins}, problems: {examination.num_problems}")


def _surroundings(examination: Examination) -> Iterator[str]:
    """Lines about faults of the installation, and not of a candidate."""
    for text in examination.unmet_requirements:
        yield f"missing: {text}"
    for text in examination.environment_problems:
        yield f"environment: {text}"
    if examination.cache_problem:
        yield f"cache: {examination.cache_problem}"
    for path in examination.bad_directories:
        yield f"cannot look into {path.path}: {path.reason}"
    for path in examination.skipped:
        yield f"skipped {path.path}: {path.reason}"


def print_compiled(examination: FileExamination) -> None:
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


def print_model(examination: ModelExamination) -> None:
    """Print the description of a model file that is not compiled."""
    printer = Printer()
    printer.heading(examination.path)
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    printer.line(f"contents: {examination.damage or 'sound'}")
    for operator, count in examination.missing_operators.items():
        printer.line(f"armpy does not have the operator: {operator} x{count}")
    for text in examination.open_inputs:
        printer.line(f"input whose shape is open: {text}")
    for text in examination.refusals:
        printer.line(f"fell back: {text}")
    for text in examination.first_start:
        printer.line(f"cache: {text}")
    if examination.remedy:
        printer.line(f"to do: {examination.remedy}")


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
    yield from _detail_lines(diagnosis.details)


def _detail_lines(details: Mapping[str, Any]) -> Iterator[str]:
    """Lines about the properties of a backend or plugin, and about its trials."""
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
    yield from details.get("diagnosis", ())
    for trial in details.get("trials", ()):
        yield f"trial: {trial['operation']} {trial['text']}"
