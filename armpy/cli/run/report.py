"""Output of `run`: tables for people, documents for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from armpy.cli.printer import Printer
from armpy.core.documents import document_of, plain
from armpy.core.units import counted, type_name
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.run.results import OutputReport
    from armpy.cli.run.run_model import RunReport, RunTiming
    from armpy.compiler import Alternative, Placement


def show_hints(hints: Sequence[str]) -> None:
    """Print the assumptions, each once."""
    if sys.stderr is not None:
        for hint in dict.fromkeys(hints):
            print(f"armpy: hint: {hint}", file=sys.stderr)


def print_run(report: RunReport, print_more: Callable[[Printer], None] | None = None) -> None:
    """Print what a run has shown: the answer first, then where it was computed.

    `print_more` prints what a caller has found in the outputs, and comes after them.
    """
    printer = Printer()
    printer.line(f"inputs: {report.inputs}")
    for output in report.outputs:
        _print_output(printer, output)
    if print_more is not None:
        print_more(printer)
    if report.timing is not None:
        print_timing(printer, report.timing)
    if report.metadata:
        printer.line(f"from the file's metadata: {'; '.join(report.metadata)}")
    print_placement(printer, report.placement, report.placed)
    print_alternatives(printer, report.alternatives)
    for path in report.files:
        printer.line(f"written: {path}")


def print_timing(printer: Printer, timing: RunTiming) -> None:
    """Print how long executions took."""
    printer.line(
        f"time: median {timing.median_ms:.3f} ms of {counted(timing.runs, 'run')}, quartiles "
        f"{timing.low_ms:.3f} to {timing.high_ms:.3f} ms, min {timing.min_ms:.3f} ms"
    )


def print_placement(printer: Printer, text: str, placed: Placement | None) -> None:
    """Print where layers run; a terminal shows at a glance whether some fell back."""
    line = f"placement: {text}"
    if placed is None:
        printer.line(line)
    else:
        printer.marked(line, is_good=placed.fallbacks == 0)


def print_alternatives(printer: Printer, alternatives: Sequence[Alternative]) -> None:
    """Print what placements were weighed, and what each costs."""
    if not alternatives:
        return
    printer.heading("Placements that were weighed")
    printer.table(
        ["", "estimated us>", "placement", "layers"],
        [
            (
                "*" if placement.is_chosen else "",
                f"{placement.estimated_us:.1f}",
                placement.name,
                ", ".join(f"{name} {count}" for name, count in placement.layers_by_backend.items()),
            )
            for placement in alternatives
        ],
    )


def _print_output(printer: Printer, output: OutputReport) -> None:
    text = f"output: {output.name} {type_name(output.type)} {format_shape(output.shape)}"
    if output.min is not None:
        text += f" min {output.min:.6g} max {output.max:.6g} mean {output.mean:.6g}"
    if output.texts:
        text += " " + ", ".join(map(ascii, output.texts))
    printer.line(text)
    by_row = [(number, row) for number, classes in enumerate(output.rows) for row in classes]
    tables: dict[tuple[str, ...], list[tuple[object, ...]]] = {
        ("class>", "score>", "label"): [
            (c.index, f"{c.score:.4f}", c.label) for c in output.classes
        ],
        ("row>", "class>", "score>", "label"): [
            (number, c.index, f"{c.score:.4f}", c.label) for number, c in by_row
        ],
        ("class>", "pixels>", "share>", "label"): [
            (r.index, r.pixels, f"{r.share:.2%}", r.label) for r in output.regions
        ],
    }
    for columns, rows in tables.items():
        if rows:
            printer.table(*without_empty_last(columns, rows))


def without_empty_last(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """A table without its last column, if there is nothing in it."""
    if any(str(row[-1]) for row in rows):
        return columns, rows
    return columns[:-1], [row[:-1] for row in rows]


def run_document(model: str, report: RunReport) -> dict[str, object]:
    """A run as a JSON document; its placement is an object with the text in it."""
    document: dict[str, object] = {"model": model, **document_of(replace(report, placed=None))}
    del document["placed"]
    document["placement"] = placement_in(report.placement, report.placed)
    return document


def placement_in(text: str, placed: Placement | None) -> dict[str, object]:
    """The placement in a document, without its layers; its text alone where no more is known."""
    if placed is None:
        return {"text": text}
    hits = sum(use.is_hit for use in placed.cache_uses)
    return {
        "text": str(placed),
        "layers": sum(placed.layers_by_backend.values()),
        "layers_by_backend": dict(placed.layers_by_backend),
        "fallbacks": placed.fallbacks,
        "partitions": placed.num_partitions,
        "copies": placed.num_copies,
        "working_memory_bytes": placed.peak_bytes,
        "preference": placed.preference,
        "basis": placed.basis,
        "cache_hits": hits,
        "cache_misses": len(placed.cache_uses) - hits,
        "refusals": plain(placed.refusals),
    }
