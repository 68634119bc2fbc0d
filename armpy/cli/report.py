"""Writes reports to stdout: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from armpy.cli.backends import BackendReport
from armpy.cli.inspect import ModelReport, TensorReport
from armpy.cli.results import OutputReport
from armpy.cli.run import RunReport
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 100_000
"""Columns where there is no terminal, so that nothing is folded."""

_KIB = 1024


def print_json(document: object) -> None:
    """Write one JSON document; NaN and infinities, which JSON lacks, become null."""
    if sys.stdout is not None:
        sys.stdout.write(json.dumps(_plain(document), indent=2, allow_nan=False) + "\n")


def _plain(value: object) -> object:
    """A value made of what JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class Printer:
    """Prints lines and tables, plain where stdout is no terminal."""

    def __init__(self) -> None:
        self._console = _console()

    def line(self, text: str) -> None:
        """Print a line; a terminal may break it."""
        from rich.text import Text  # noqa: PLC0415  # slow to import

        self._console.print(Text(printable(text)), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print a line that stands out, after an empty one."""
        from rich.text import Text  # noqa: PLC0415

        self._console.print()
        self._console.print(Text(printable(text), style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; cells are folded where a terminal is too narrow, never cut off.

        Parameters
        ----------
        columns : sequence of str
            Headings; those that end in ``>`` have their cells at the right.
        rows : iterable of sequence
        """
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            right = column.endswith(">")
            table.add_column(
                column.rstrip(">"), justify="right" if right else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(printable(str(cell))) for cell in row))
        if self._console.is_terminal:
            self._console.print(table)
            return
        with self._console.capture() as capture:
            self._console.print(table)
        for line in capture.get().splitlines():
            self.line(line.rstrip())


def _console() -> Console:
    """A console for stdout."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    return (
        console
        if console.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=_PIPE_WIDTH)
    )


def printable(text: str) -> str:
    """Text whose control characters are escaped; names in files may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_run(report: RunReport) -> None:
    """Print what a run has shown."""
    printer = Printer()
    printer.line(f"placement: {report.placement}")
    printer.line(f"inputs: {report.inputs}")
    for output in report.outputs:
        _print_output(printer, output)
    if report.timing is not None:
        timing = report.timing
        printer.line(
            f"time: min {timing.min_ms:.3f} ms, median {timing.median_ms:.3f} ms, "
            f"mean {timing.mean_ms:.3f} ms of {timing.runs} runs"
        )
    for path in report.files:
        printer.line(f"written: {path}")


def _print_output(printer: Printer, output: OutputReport) -> None:
    """Print one output."""
    text = f"output: {output.name} {output.type}{format_shape(output.shape)}"
    if output.min is not None:
        text += f" min {output.min:.6g} max {output.max:.6g} mean {output.mean:.6g}"
    printer.line(text)
    if output.classes:
        columns = ["class>", "score>", "label"]
        rows = [(c.index, f"{c.score:.4f}", c.label) for c in output.classes]
        printer.table(columns, rows)
    if output.regions:
        columns = ["class>", "pixels>", "share>", "label"]
        printer.table(
            columns, [(r.index, r.pixels, f"{r.share:.2%}", r.label) for r in output.regions]
        )


def run_document(model: str, report: RunReport) -> dict[str, object]:
    """A run as a JSON document."""
    return {"model": model, **asdict(report)}


def print_model(report: ModelReport, *, with_layers: bool = False) -> None:
    """Print the description of a model."""
    printer = Printer()
    printer.line(f"placement: {report.placement}")
    printer.line(
        f"memory: weights {report.weights_bytes / _KIB:.0f} KiB, working memory "
        f"{report.arena_bytes / _KIB:.0f} KiB per execution, state "
        f"{report.variables_bytes / _KIB:.0f} KiB"
    )
    _print_tensors(printer, "Inputs", report.inputs)
    _print_tensors(printer, "Outputs", report.outputs)
    printer.heading("Operators")
    printer.table(["count>", "operation"], [(n, name) for name, n in report.operators.items()])
    if report.signatures:
        printer.heading("Signatures")
        printer.table(
            ["name", "inputs", "outputs"],
            [(s.name, ", ".join(s.inputs), ", ".join(s.outputs)) for s in report.signatures],
        )
    if report.layers_by_backend:
        printer.heading("Placement")
        printer.table(["layers>", "backend"], [(n, b) for b, n in report.layers_by_backend.items()])
    if report.refusals:
        printer.heading("Refusals")
        printer.table(
            ["layers>", "operation", "backend", "reason"],
            [(r.count, r.operation, r.backend, r.reason) for r in report.refusals],
        )
    if with_layers:
        printer.heading("Layers")
        printer.table(
            ["#>", "operation", "backend", "part>", "name"],
            [(x.number, x.operation, x.backend, x.partition, x.name) for x in report.layers],
        )


def _print_tensors(printer: Printer, title: str, tensors: Sequence[TensorReport]) -> None:
    """Print a table of inputs or outputs."""
    printer.heading(title)
    rows = [
        (
            tensor.name,
            format_shape(tensor.shape),
            tensor.type,
            "" if tensor.scale is None else f"{tensor.scale:.8g}",
            "" if tensor.zero_point is None else tensor.zero_point,
        )
        for tensor in tensors
    ]
    printer.table(["name", "shape", "type", "scale>", "zero point>"], rows)


def model_document(model: str, report: ModelReport, *, with_layers: bool) -> dict[str, object]:
    """The description of a model as a JSON document; layers only where asked for."""
    document: dict[str, object] = {"model": model, **asdict(report)}
    if not with_layers:
        del document["layers"]
    return document


def print_backends(reports: Sequence[BackendReport]) -> None:
    """Print a table of backends."""
    printer = Printer()
    if not reports:
        printer.line("no backend is installed")
        return
    columns = ["id", "source", "status", "device", "API", "reason"]
    printer.table(
        columns,
        [
            (r.id, r.source, r.status, r.device_type or "", r.api_version or "", r.reason)
            for r in reports
        ],
    )


def backends_document(reports: Sequence[BackendReport]) -> dict[str, object]:
    """A list of backends as a JSON document."""
    return {"backends": [asdict(report) for report in reports]}
