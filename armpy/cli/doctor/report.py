"""Prints what the doctor found, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from armpy.cli.doctor.diagnose import NO_DEVICE, Diagnosis, Examination, examine
from armpy.cli.printer import Printer
from armpy.plugins import PluginOptions

if TYPE_CHECKING:
    from armpy.cli.doctor.diagnose_model import ModelExamination
    from armpy.cli.inspect.examine_file import FileExamination


_LONG_FACTS = ("extensions", "isolated backends")
"""Facts that are of interest in reports of faults, and need not be read otherwise."""

_MOST_COLUMNS = 100
"""Width of long lines where there is no terminal."""

_ALL = sys.maxsize
_INDENT = "  "
_MORE = " ... (-v: all)"


def examine_and_print() -> None:
    """Examine the installation where the libraries of the command line are missing."""
    print_installation(examine(PluginOptions()), with_tracebacks=False)


def print_installation(
    examination: Examination, *, with_tracebacks: bool, in_full: bool = False
) -> None:
    """Print an examination; with tracebacks, also what candidates raised and wrote.

    Unless it is printed in full, long lines about what is well are cut to the terminal's width, and
    of plugins that are well only what they add is named.
    """
    printer = Printer()
    width = _ALL if in_full else min(printer.width, _MOST_COLUMNS)
    for name, text in examination.facts.items():
        line = f"{name}: {text}"
        printer.line(_cut(line, width) if name in _LONG_FACTS else line)
    for path in examination.skipped:
        printer.line(f"skipped {path.path}: {path.reason}")
    was_short = False
    for diagnosis in (*examination.candidates, *examination.plugins):
        if diagnosis.status == NO_DEVICE:
            continue
        is_plugin = diagnosis in examination.plugins
        name = _title(diagnosis, examination)
        is_short = is_plugin and diagnosis.is_ok and not in_full
        if not (is_short and was_short):
            printer.line("")
        was_short = is_short
        printer.line(f"{name}: {diagnosis.status}", "bold")
        for line in _lines(diagnosis, width, is_short=is_short):
            printer.line(f"{_INDENT}{line}")
        if with_tracebacks:
            for line in (diagnosis.traceback or diagnosis.output).splitlines():
                printer.line(f"  | {line}")
    printer.line("")
    for diagnosis in examination.candidates:
        if diagnosis.status == NO_DEVICE:
            printer.line(f"{diagnosis.id or diagnosis.source}: {NO_DEVICE}: {diagnosis.cause}")
    for line in _problems(examination):
        printer.line(f"problem: {line}")
    count = len(examination.candidates)
    plugins = f", plugins: {len(examination.plugins)}" if examination.plugins else ""
    printer.line(f"candidates: {count}{plugins}, problems: {examination.num_problems}")


def _title(diagnosis: Diagnosis, examination: Examination) -> str:
    """A candidate's name and version, and whether it is a plugin with hooks."""
    name = " ".join(filter(None, (diagnosis.id or diagnosis.name, diagnosis.version)))
    return f"plugin {name}" if diagnosis in examination.plugins else name


def _problems(examination: Examination) -> Iterator[str]:
    """All problems with what to do, to be read without looking for them among what is well."""
    yield from examination.unmet_requirements
    yield from examination.environment_problems
    if examination.cache_problem:
        yield f"cache: {examination.cache_problem}"
    for path in examination.bad_directories:
        yield f"cannot look into {path.path}: {path.reason}. {examination.directories_fix}"
    for diagnosis in examination.sick:
        advice = ". ".join(filter(None, (diagnosis.cause.rstrip("."), diagnosis.remedy)))
        yield f"{_title(diagnosis, examination)}: {advice or diagnosis.status}"


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


def _cut(line: str, width: int) -> str:
    """Return a line that has at most a width, with how the rest is shown."""
    if len(line) <= width:
        return line
    return f"{line[: width - len(_MORE)].rstrip(' ,')}{_MORE}"


def _lines(diagnosis: Diagnosis, width: int, *, is_short: bool) -> Iterator[str]:
    if not is_short:
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
    yield from _detail_lines(diagnosis.details, width - len(_INDENT), is_short=is_short)


def _detail_lines(details: Mapping[str, Any], width: int, *, is_short: bool) -> Iterator[str]:
    """Lines about the properties of a backend or plugin, and about its trials."""
    for option in details.get("options", ()):
        line = (
            f"option {option['name']} ({option['scope']}, {option['allowed']}, "
            f"default {option['default']!r}): {option['help']}"
        )
        yield _cut(line, width)
    if details.get("capabilities"):
        shown = (k if v is True else f"{k}={v}" for k, v in details["capabilities"].items())
        yield _cut(f"capabilities: {', '.join(shown)}", width)
    if details.get("extensions"):
        yield f"extensions: {', '.join(details['extensions'])}"
    for front_end in details.get("front_ends", ()):
        missing = f", needs {', '.join(front_end['missing'])}" if front_end["missing"] else ""
        install = f": {front_end['install']}" if missing and front_end["install"] else ""
        suffixes = ", ".join(front_end["suffixes"]) or "no suffix"
        yield f"front-end {front_end['name']}: {front_end['title']} ({suffixes}){missing}{install}"
    if details.get("commands"):
        yield f"commands: {', '.join(details['commands'])}"
    if details.get("hooks") and not is_short:
        yield f"hooks: {', '.join(details['hooks'])}"
    yield from details.get("diagnosis", ())
    for trial in details.get("trials", ()):
        yield f"trial: {trial['operation']} {trial['text']}"
