"""Prints what quantising a model has come to."""

from __future__ import annotations

import math

from armpy.cli.printer import Printer
from armpy.core.units import bytes_text, counted
from armpy.profiling import short_names
from armpy_tools.cli.quantize.quantize_file import QuantizeResult
from armpy_tools.quantize import LayerAccuracy, OutputAccuracy, QuantizeReport

_NUM_WORST = 8
"""Layers that are listed unless all are asked for."""

OUTPUT_COLUMNS = ("output", "SQNR dB>", "cosine>", "mean error>", "max error>", "same class>")
LAYER_COLUMNS = ("layer", "operation", "as", "SQNR dB>", "cosine>", "max error>")


def quantized_document(result: QuantizeResult) -> dict[str, object]:
    """The result for JSON."""
    return {
        "model": result.model,
        "output": result.output,
        "model_bytes": result.model_bytes,
        "output_bytes": result.output_bytes,
        "metadata": list(result.metadata),
        "warnings": list(result.warnings),
        **result.report.document(),
    }


def print_quantized(result: QuantizeResult, *, with_layers: bool = False) -> None:
    """Print the result: outputs first, then layers."""
    printer, report = Printer(), result.report
    share = result.output_bytes / max(result.model_bytes, 1)
    printer.line(
        f"{result.output}: {bytes_text(result.output_bytes)}, {share:.0%} of "
        f"{result.model} ({bytes_text(result.model_bytes)})"
    )
    printer.line(method_text(report))
    for used in result.metadata:
        printer.line(f"From the file: {used}")
    if report.outputs:
        printer.heading(
            f"Outputs against the float model's, on {counted(report.num_judged, 'sample')}"
        )
        names = short_names(output.name for output in report.outputs)
        rows = [output_row(output, names[output.name]) for output in report.outputs]
        printer.table(OUTPUT_COLUMNS, rows)
    shown = report.layers if with_layers else worst_layers(report)
    if shown:
        title = "Layers" if with_layers else f"The {len(shown)} least accurate layers"
        printer.heading(f"{title} of {len(report.layers)}")
        shorts = layer_names(report)
        rows = [layer_row(layer, shorts[layer.layer]) for layer in shown]
        printer.table(LAYER_COLUMNS, rows)
    _print_kept(printer, report)


def worst_layers(report: QuantizeReport) -> list[LayerAccuracy]:
    """The layers whose outputs are furthest from the float model's, the worst first."""
    changed = [
        layer for layer in report.layers if not math.isinf(layer.sqnr_db) or layer.sqnr_db < 0
    ]
    return sorted(changed, key=lambda layer: layer.sqnr_db)[:_NUM_WORST]


def output_row(one: OutputAccuracy, name: str) -> tuple[str, ...]:
    """An output in a table of `OUTPUT_COLUMNS`."""
    return (
        name,
        decibels(one.sqnr_db),
        f"{one.cosine:.5f}",
        f"{one.mean_error:.3g}",
        f"{one.max_error:.3g}",
        "-" if one.top1_agreement is None else f"{one.top1_agreement:.1%}",
    )


def layer_row(one: LayerAccuracy, name: str) -> tuple[str, ...]:
    """A layer in a table of `LAYER_COLUMNS`."""
    return (
        name,
        one.operation,
        one.precision,
        decibels(one.sqnr_db),
        f"{one.cosine:.5f}",
        f"{one.max_error:.3g}",
    )


def layer_names(report: QuantizeReport) -> dict[str, str]:
    """A short name for each layer of the report."""
    return {layer.layer: layer.short_name for layer in report.layers}


def _print_kept(printer: Printer, report: QuantizeReport) -> None:
    """Name the layers that stay float, and why."""
    if not report.kept_float:
        if report.layers:
            printer.heading("Every layer of real numbers is quantised.")
        return
    count = len(report.kept_float)
    printer.heading("1 layer stays float" if count == 1 else f"{count} layers stay float")
    names = layer_names(report)
    rows = [(names[layer.layer], layer.operation, layer.reason) for layer in report.kept_float]
    printer.table(("layer", "operation", "reason"), rows)


def method_text(report: QuantizeReport) -> str:
    """Describe the result and the method, in a line."""
    if report.method == "none":
        return report.scheme
    return (
        f"{report.scheme}, ranges by {report.method} from {counted(report.num_samples, 'sample')}"
    )


def decibels(number: float) -> str:
    """Decibels for a table."""
    return "exact" if number == math.inf else f"{number:.1f}"
