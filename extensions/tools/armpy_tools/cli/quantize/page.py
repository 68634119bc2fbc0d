"""The page that `armpy quantize --html` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import armpy
from armpy.cli.files import write_text
from armpy.core.units import bytes_text
from armpy_conformance.pages import (
    Bar,
    Bars,
    Facts,
    Lines,
    Section,
    Series,
    Table,
    Text,
    render_page,
)
from armpy_tools.cli.quantize.quantize_file import QuantizeResult
from armpy_tools.cli.quantize.report import (
    LAYER_COLUMNS,
    OUTPUT_COLUMNS,
    layer_row,
    method_text,
    output_row,
    short_name,
)
from armpy_tools.quantize import QuantizeReport

_NUM_WORST = 20


def write_page(path: str, result: QuantizeResult) -> None:
    """Write what quantising a model has come to as one page.

    Raises
    ------
    UnimplementedError
        If the template engine is not installed.
    InvalidArgumentError
        If the file cannot be written.
    """
    report = result.report
    sections = [Section("Summary", [*_summary(result)])]
    if report.layers:
        sections.append(Section("Layers", [*_layers(report)]))
    title = f"{result.model.rpartition('/')[2]} as {report.scheme}"
    write_text(path, render_page(title, sections, about=f"armpy {armpy.__version__}"))


def _summary(result: QuantizeResult) -> Iterator[Facts | Text | Table]:
    """Files, outputs, and the layers that stay float."""
    report = result.report
    yield Facts(
        [
            ("file", f"{result.output}, {bytes_text(result.output_bytes)}"),
            ("made of", f"{result.model}, {bytes_text(result.model_bytes)}"),
            ("how", method_text(report)),
            ("compared on", f"{report.num_judged} samples"),
        ]
    )
    for warning in result.warnings:
        yield Text(warning, "bad")
    for hint in result.hints:
        yield Text(hint, "note")
    if report.outputs:
        rows = [output_row(output, output.name) for output in report.outputs]
        yield Table("Outputs against the float model's", OUTPUT_COLUMNS, rows)
    float_layers = report.kept_float
    if float_layers:
        rows = [(layer.layer, layer.operation, layer.reason) for layer in float_layers]
        yield Table("Layers that stay float", ["layer", "operation", "reason"], rows)
    elif report.layers:
        yield Text("Every layer of real numbers is quantised.", "good")


def _layers(report: QuantizeReport) -> Iterator[Lines | Bars | Table]:
    """Return the accuracy of each layer: along the network, the worst first, and all figures."""
    finite = [(i, row) for i, row in enumerate(report.layers) if math.isfinite(row.sqnr_db)]
    if finite:
        labels = [f"{short_name(row.layer)}, {row.operation}" for _, row in finite]
        places, heights = [float(place) for place, _ in finite], [row.sqnr_db for _, row in finite]
        series = Series("signal to noise", places, heights, labels)
        yield Lines("Signal to quantisation noise, layer by layer", [series], "layer", "dB")
        worst = sorted((row for _, row in finite), key=lambda row: row.sqnr_db)[:_NUM_WORST]
        bars = [
            Bar(
                short_name(layer.layer),
                max(layer.sqnr_db, 0.0),
                f"{layer.sqnr_db:.1f} dB",
                group=layer.precision,
            )
            for layer in worst
        ]
        yield Bars("The least accurate layers", bars, "layer", "SQNR")
    rows = [(*layer_row(layer, layer.layer), f"{layer.mean_error:.3g}") for layer in report.layers]
    yield Table("Every layer", (*LAYER_COLUMNS, "mean error>"), rows)
