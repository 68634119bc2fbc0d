"""Tables of devices and of their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from armpy.cli.printer import Printer
from armpy.compiler.devices import FigureSource, device_facts
from armpy.compiler.machine import machine_identity
from armpy.core.units import bytes_text
from armpy.errors import ArmpyError
from armpy.plugins.placers import Placers
from armpy.plugins.proxy.figures import figures_fields
from armpy.plugins.proxy.guard import BackendProxy

if TYPE_CHECKING:
    from armpy.backend import DeviceFigures, Numerics, PerformanceFigures
    from armpy.compiler.devices import DeviceFacts
    from armpy.plugins import BackendRegistry
    from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """Report about one backend's device: facts, or the reason why there are none."""

    backend: BackendId
    facts: DeviceFacts | None = None
    reason: str = ""


def list_devices(registry: BackendRegistry) -> list[DeviceReport]:
    """Describe the device of every backend that can be loaded, and say why others cannot."""
    placers = Placers(registry)
    reports = []
    for backend in registry.available():
        report = DeviceReport(backend.get_id())
        try:
            report = replace(report, facts=device_facts(BackendProxy(backend), placers))
        except ArmpyError as error:
            report = replace(report, reason=str(error))
        reports.append(report)
    return reports


def print_devices(reports: Sequence[DeviceReport]) -> None:
    """Print each device with its figures."""
    printer = Printer()
    if not reports:
        printer.line("no backend can be used")
    for number, report in enumerate(reports):
        facts = report.facts
        (printer.heading if number else printer.line)(report.backend)
        if facts is None:
            printer.line(f"cannot be used: {report.reason}")
            continue
        printer.line(f"type {facts.type.name}, version {facts.version or 'unknown'}")
        if facts.others:
            printer.line(f"device {facts.device.name}; others: {', '.join(facts.others)}")
        printer.line(f"feature level {facts.feature_level}")
        if facts.free_bytes is not None:
            printer.line(f"free memory: {bytes_text(facts.free_bytes)}")
        if departures := _departures(facts.device.numerics):
            printer.line(f"floating point: {', '.join(departures)}")
        printer.line(f"extensions: {', '.join(facts.extensions) or 'none'}")
        printer.line(f"cache files: {facts.num_cache_files}, of data: {facts.num_data_cache_files}")
        if facts.figures is None:
            printer.line("figures: none; run 'armpy calibrate'")
            continue
        source = facts.figures_source.value
        if facts.figures_source is FigureSource.TYPICAL:
            source += " (run 'armpy calibrate' to measure this machine)"
        printer.line(f"figures, {source}, against CpuRef; lower is better:")
        printer.table(["operands", "time>", "power>"], figure_rows(facts.figures))


def _departures(numerics: Numerics) -> list[str]:
    """Where a device does not compute as IEEE 754 has it, in words."""
    said = {
        "NaN may be lost": not numerics.keeps_nan,
        "float16 sums are rounded to float16": numerics.sums_float16,
        "subnormal numbers are taken for zero": numerics.flushes_subnormals,
    }
    return [text for text, holds in said.items() if holds]


def devices_document(reports: Sequence[DeviceReport]) -> dict[str, object]:
    """Everything about devices as a JSON document."""
    return {"machine": machine_identity(), "devices": [_fields(report) for report in reports]}


def _fields(report: DeviceReport) -> dict[str, object]:
    """One device as a JSON object."""
    facts = report.facts
    if facts is None:
        return {"backend": report.backend, "reason": report.reason}
    return {
        "backend": facts.backend,
        "type": facts.type.name,
        "version": facts.version,
        "device": facts.device.name,
        "other_devices": list(facts.others),
        "feature_level": facts.feature_level,
        "free_bytes": facts.free_bytes,
        "numerics": asdict(facts.device.numerics),
        "extensions": list(facts.extensions),
        "num_cache_files": facts.num_cache_files,
        "num_data_cache_files": facts.num_data_cache_files,
        "figures": facts.figures and figures_fields(facts.figures),
        "figures_source": facts.figures_source.value if facts.figures else None,
    }


def figure_rows(figures: DeviceFigures | None) -> list[tuple[str, str, str]]:
    """Lines of a table of figures: what they are of, time and power."""
    if figures is None:
        return []
    named: list[tuple[str, PerformanceFigures | None]] = [
        *((key.name, pair) for key, pair in figures.tensors.items()),
        ("FLOAT32, relaxed", figures.relaxed_tensor),
        *((f"{key.name} scalar", pair) for key, pair in figures.scalars.items()),
        ("FLOAT32 scalar, relaxed", figures.relaxed_scalar),
        ("IF", figures.if_),
        ("WHILE", figures.while_),
        *figures.extensions.items(),
    ]
    return [
        (name, f"{pair.exec_time:.3g}", f"{pair.power_usage:.3g}")
        for name, pair in named
        if pair is not None
    ]
