"""The page that `armpy quantize --html` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import armpy
from armpy.cli.files import write_text
from armpy.core.units import bytes_text, counted
from armpy.profiling import short_names
from armpy_tools.cli.quantize.quantize_file import QuantizeResult
from armpy_tools.cli.quantize.report import (
    LAYER_COLUMNS,
    OUTPUT_COLUMNS,
    layer_names,
    layer_row,
    method_text,
    output_row,
)
from armpy_tools.pages import (
    Cautions,
    Details,
    Facts,
    Lines,
    Section,
    Series,
    Table,
    Text,
    render_page,
)
from armpy_tools.quantize import QuantizeReport

_LEAST_DB = 20.0
"""Where axes of accuracy begin: layers that are usable lie above, and 0 has no meaning there."""


def write_page(path: str, result: QuantizeResult) -> None:
    """Write what quantising a model has come to as one page.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be written.
    """
    report = result.report
    sections = [Section("Overview", [*_overview(result)])]
    if report.layers:
        sections.append(Section("Layers", [*_layers(report)]))
    title = f"Quantisation of {result.model.rpartition('/')[2]} to {report.scheme}"
    write_text(path, render_page(title, sections, about=f"armpy {armpy.__version__}"))


def _overview(result: QuantizeResult) -> Iterator[Cautions | Facts | Text | Table]:
    """The result in a sentence, what endangers it, outputs, layers that stay float, and files."""
    report = result.report
    yield Text(_in_a_line(result), "lead")
    for warning in result.warnings:
        yield Text(warning, "bad")
    yield Cautions([f"{hint[0].upper()}{hint[1:].rstrip('.')}." for hint in result.hints])
    if report.outputs:
        names = short_names(output.name for output in report.outputs)
        rows = [output_row(output, names[output.name]) for output in report.outputs]
        yield Table("Outputs against the float model's", OUTPUT_COLUMNS, rows)
    float_layers = report.kept_float
    if float_layers:
        shorts = layer_names(report)
        rows = [(shorts[layer.layer], layer.operation, layer.reason) for layer in float_layers]
        yield Table("Layers that stay float", ["layer", "operation", "reason"], rows)
    elif report.layers:
        yield Text("Every layer of real numbers is quantised.", "good")
    yield Facts(
        [
            ("file", f"{result.output}, {bytes_text(result.output_bytes)}"),
            ("made of", f"{result.model}, {bytes_text(result.model_bytes)}"),
            ("method", method_text(report)),
            ("compared on", counted(report.num_judged, "sample")),
        ]
    )


def _in_a_line(result: QuantizeResult) -> str:
    """How small the file is, and how accurate the outputs are at least."""
    share = result.output_bytes / max(result.model_bytes, 1)
    name = result.output.rpartition("/")[2]
    size = bytes_text(result.output_bytes)
    text = f"{name} has {size}, {100 * share:.0f} % of the float model"
    worst = min(result.report.outputs, key=lambda output: output.sqnr_db, default=None)
    if worst is None:
        return f"{text}."
    noise = (
        "no noise" if worst.sqnr_db == math.inf else f"{worst.sqnr_db:.0f} dB of signal to noise"
    )
    subject = "worst output" if len(result.report.outputs) > 1 else "output"
    text += f"; its {subject} has {noise}"
    if worst.top1_agreement is not None:
        text += f" and the same class in {100 * worst.top1_agreement:.0f} % of the rows"
    return f"{text}."


def _layers(report: QuantizeReport) -> Iterator[Lines | Table | Details]:
    """Return the accuracy of each layer: along the network, and all figures."""
    names = layer_names(report)
    finite = [(i, row) for i, row in enumerate(report.layers) if math.isfinite(row.sqnr_db)]
    if finite:
        labels = [f"{names[row.layer]}, {row.operation}" for _, row in finite]
        places, heights = [float(place) for place, _ in finite], [row.sqnr_db for _, row in finite]
        series = Series("signal to noise", places, heights, labels)
        caption = "Signal to quantisation noise, layer by layer"
        yield Lines(caption, [series], "layer", "dB", has_points=True, y_from=_LEAST_DB)
    rows = [
        (*layer_row(layer, names[layer.layer]), f"{layer.mean_error:.3g}")
        for layer in report.layers
    ]
    yield Table("Every layer", (*LAYER_COLUMNS, "mean error>"), rows)
    whole = [(names[layer.layer], layer.layer) for layer in report.layers]
    if any(name != layer for name, layer in whole):
        table = Table("Names that --keep-float takes", ("layer", "whole name"), whole)
        yield Details("Whole names of layers", [table])
