"""Printed and JSON forms of what `armpy doctor` finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from armpy.cli.doctor.diagnose import Diagnosis, Examination
from armpy.cli.doctor.diagnose_file import FileExamination
from armpy.cli.printer import Printer


def doctor_document(examination: Examination) -> dict[str, object]:
    """An examination as a JSON document."""
    return {
        "facts": examination.facts,
        "candidates": [asdict(diagnosis) for diagnosis in examination.diagnoses],
        "plugins": [asdict(diagnosis) for diagnosis in examination.plugins],
        "skipped": [{"path": p, "reason": r} for p, r in examination.skipped],
        "bad_directories": [{"path": p, "reason": r} for p, r in examination.bad_directories],
        "num_problems": examination.num_problems,
    }


def print_examination(examination: Examination, *, with_tracebacks: bool = False) -> None:
    """Print an examination.

    Parameters
    ----------
    with_tracebacks : bool
        Show also what candidates raised and wrote.
    """
    printer = Printer()
    for name, text in examination.facts.items():
        printer.line(f"{name}: {text}")
    for path, reason in examination.bad_directories:
        printer.line(f"cannot look into {path}: {reason}")
    for path, reason in examination.skipped:
        printer.line(f"skipped {path}: {reason}")
    for diagnosis in (*examination.diagnoses, *examination.plugins):
        name = " ".join(filter(None, (diagnosis.id or diagnosis.name, diagnosis.version)))
        name = f"plugin {name}" if diagnosis in examination.plugins else name
        printer.heading(f"{name}: {diagnosis.status}")
        for line in _lines(diagnosis):
            printer.line(f"  {line}")
        if with_tracebacks:
            for line in (diagnosis.traceback or diagnosis.output).splitlines():
                printer.line(f"  | {line}")
    printer.line("")
    count = len(examination.diagnoses)
    plugins = f", plugins: {len(examination.plugins)}" if examination.plugins else ""
    printer.line(f"candidates: {count}{plugins}, problems: {examination.num_problems}")


def file_document(examination: FileExamination) -> dict[str, object]:
    """What was found out about a prepared file, as a JSON document."""
    return {**asdict(examination), "is_ok": examination.is_ok}


def print_file_examination(examination: FileExamination) -> None:
    """Print what was found out about a prepared file."""
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
