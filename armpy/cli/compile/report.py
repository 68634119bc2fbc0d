"""Report of `compile`: contents of the file, and what it lacks."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from armpy.cli.inspect.prepared_file import FileBytes, MissingProgram, PreparedContents
from armpy.cli.printer import Printer
from armpy.core.units import bytes_text
from armpy.store.archive.container import open_container
from armpy.store.archive.signing import NO_KEY, key_text


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Report of a file that `armpy compile` has made.

    Parameters
    ----------
    model, output : str
        Paths.
    original_bytes : int
        Of the model's file.
    bytes : FileBytes
    layers_by_backend : dict of str to int
    targets_by_backend : dict of str to list of str
        What backends have compiled for.
    left_out : tuple of MissingProgram
    signer : str
        The key that has signed it; empty if none has.
    """

    model: str
    output: str
    original_bytes: int
    bytes: FileBytes
    layers_by_backend: dict[str, int]
    targets_by_backend: dict[str, list[str]]
    left_out: tuple[MissingProgram, ...]
    signer: str


def describe_compiled(output: str, model: str) -> CompileReport:
    """Describe a file that was just written."""
    contents = PreparedContents(open_container(output))
    placement = contents.placement()
    targets: dict[str, list[str]] = {}
    for program in contents.programs:
        of_backend = targets.setdefault(program.backend, [])
        if program.target not in of_backend:
            of_backend.append(program.target)
    key = contents.container.key
    return CompileReport(
        model,
        output,
        os.path.getsize(model),
        contents.sizes,
        {} if placement is None else dict(placement.layers_by_backend),
        targets,
        contents.left_out,
        "" if key == NO_KEY else key_text(key),
    )


def print_compiled(report: CompileReport) -> None:
    """Print it for people."""
    printer = Printer()
    signed = f", signed by {report.signer}" if report.signer else ""
    printer.line(f"written: {report.output}{signed}")
    size = report.bytes
    ratio = size.total / max(report.original_bytes, 1)
    printer.line(
        f"size: {bytes_text(size.total)}, {ratio:.2f} times the original's "
        f"{bytes_text(report.original_bytes)}: constants {bytes_text(size.constants)}, "
        f"programs' data {bytes_text(size.program_data)}, code {bytes_text(size.code)}, "
        f"graph {bytes_text(size.graph)}, other {bytes_text(size.other)}"
    )
    rows = [
        (count, backend, ", ".join(report.targets_by_backend.get(backend, ())) or "nothing")
        for backend, count in report.layers_by_backend.items()
    ]
    if rows:
        printer.table(["layers>", "backend", "compiled for"], rows)
    for backend, count in report.layers_by_backend.items():
        if backend not in report.targets_by_backend and not _explained(report, backend):
            printer.line(f"not in it: {backend} compiles nothing, its {count} layers are the graph")
    for one in report.left_out:
        where = f" for {one.target}" if one.target else ""
        printer.line(
            f"not in it: {one.layers} layers of {one.backend} from '{one.first}'{where}: "
            f"{one.reason}"
        )


def _explained(report: CompileReport, backend: str) -> bool:
    """Whether it is said already why a backend has no programs."""
    return any(one.backend == backend for one in report.left_out)


def compiled_document(report: CompileReport) -> dict[str, object]:
    """The report as a JSON document."""
    return asdict(report)
