"""The page that `armpy quantize --html` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import armpy
from armpy.cli.quantize.quantize_file import QuantizeResult
from armpy.cli.quantize.report import decibels, method_text, short_name
from armpy.core.units import bytes_text
from armpy.tools.pages import Bar, Bars, Facts, Lines, Section, Series, Table, Text
from armpy.tools.pages import write_page as write
from armpy.tools.quantize import LayerAccuracy, OutputAccuracy, QuantizeReport

_NUM_WORST = 20


def write_page(path: str, result: QuantizeResult) -> None:
    """Write what quantising a model has come to as one page.

    Raises
    ------
    UnimplementedError
        If the template engine is not installed.
    OSError
        If the file cannot be written.
    """
    report = result.report
    sections = [Section("Summary", [*_summary(result)])]
    if report.layers:
        sections.append(Section("Layers", [*_layers(report)]))
    title = f"{result.model.rpartition('/')[2]} as {report.scheme}"
    write(path, title, sections, about=f"armpy {armpy.__version__}")


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
    for hint in result.hints:
        yield Text(hint, "note")
    if report.outputs:
        columns = ["output", "SQNR dB>", "cosine>", "mean error>", "max error>", "same class>"]
        yield Table("Outputs against the float model's", columns, _output_rows(report.outputs))
    kept = report.kept_float
    if kept:
        rows = [(one.layer, one.operation, one.reason) for one in kept]
        yield Table("Layers that stay float", ["layer", "operation", "reason"], rows)
    elif report.layers:
        yield Text("Every layer of real numbers is quantised.", "good")


def _output_rows(outputs: Sequence[OutputAccuracy]) -> list[tuple[str, ...]]:
    """The outputs in a table."""
    return [
        (
            one.name,
            decibels(one.sqnr_db),
            f"{one.cosine:.5f}",
            f"{one.mean_error:.3g}",
            f"{one.max_error:.3g}",
            "-" if one.top1_agreement is None else f"{one.top1_agreement:.1%}",
        )
        for one in outputs
    ]


def _layers(report: QuantizeReport) -> Iterator[Lines | Bars | Table]:
    """How accurate each layer is: along the network, the worst first, and all figures."""
    told = [(place, one) for place, one in enumerate(report.layers) if math.isfinite(one.sqnr_db)]
    if told:
        labels = [f"{short_name(one.layer)}, {one.operation}" for _, one in told]
        places, heights = [float(place) for place, _ in told], [one.sqnr_db for _, one in told]
        series = Series("signal to noise", places, heights, labels)
        yield Lines("Signal to quantisation noise, layer by layer", [series], "layer", "dB")
        worst = sorted((one for _, one in told), key=lambda one: one.sqnr_db)[:_NUM_WORST]
        bars = [
            Bar(
                short_name(one.layer),
                max(one.sqnr_db, 0.0),
                f"{one.sqnr_db:.1f} dB",
                group=one.precision,
            )
            for one in worst
        ]
        yield Bars("The least accurate layers", bars, "layer", "SQNR")
    columns = ["layer", "operation", "as", "SQNR dB>", "cosine>", "mean error>", "max error>"]
    yield Table("Every layer", columns, [_row(one) for one in report.layers])


def _row(one: LayerAccuracy) -> tuple[str, ...]:
    """A layer in a table."""
    return (
        one.layer,
        one.operation,
        one.precision,
        decibels(one.sqnr_db),
        f"{one.cosine:.5f}",
        f"{one.mean_error:.3g}",
        f"{one.max_error:.3g}",
    )
