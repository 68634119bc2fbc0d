"""``armpy devices``: lists what backends run on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from armpy.cli.options import dynamic_backends_option, report_options
from armpy.cli.printer import Printer, print_json
from armpy.compiler.devices import FigureSource, device_facts
from armpy.core.dataclass import dataclass
from armpy.core.machine import machine_identity
from armpy.core.units import bytes_text, type_name
from armpy.errors import ArmpyError
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.plugins.placers import Placers
from armpy.plugins.proxy.availability import find_unavailability, shortened
from armpy.plugins.proxy.figures import figures_fields
from armpy.plugins.proxy.guard import BackendProxy
from armpy.types import DataType

if TYPE_CHECKING:
    from armpy.backend import DeviceFigures, PerformanceFigures
    from armpy.compiler.devices import DeviceFacts
    from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """Report about one backend's device: facts, or the reason why there are none."""

    backend: BackendId
    facts: DeviceFacts | None = None
    reason: str = ""


@click.command("devices")
@dynamic_backends_option
@report_options
def command(dynamic_backends_path: tuple[str, ...], as_json: bool) -> None:
    """List the devices of all backends: type, version, figures, cache files.

    Each backend is loaded.
    """
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
    reports = list_devices(BackendRegistry.discover(options))
    if as_json:
        devices = [_fields(report.facts) for report in reports if report.facts is not None]
        unavailable = {report.backend: report.reason for report in reports if report.reason}
        print_json({"machine": machine_identity(), "devices": devices, "unavailable": unavailable})
    else:
        print_devices(reports)


def list_devices(registry: BackendRegistry) -> list[DeviceReport]:
    """Describe the device of every backend that can be loaded, or say why it cannot be used."""
    placers = Placers(registry)
    reports = []
    for backend in registry.available():
        proxy = BackendProxy(backend)
        try:
            error = find_unavailability(proxy)
            facts = device_facts(proxy, placers) if error is None else None
        except ArmpyError as failure:
            error, facts = failure, None
        reason = "" if error is None else shortened(error)
        reports.append(DeviceReport(backend.get_id(), facts, reason))
    # A library that was found is an engine for a device, whose name is not known if it fails.
    reports += [
        DeviceReport(candidate.source, reason=candidate.reason)
        for candidate in registry.candidates
        if candidate.is_unidentified_library and candidate.reason
    ]
    return reports


def print_devices(reports: Sequence[DeviceReport]) -> None:
    """Print each device with its figures."""
    printer = Printer()
    if not reports:
        printer.line("no backend can be used")
    for number, facts in enumerate(report.facts for report in reports if report.facts is not None):
        (printer.heading if number else printer.line)(facts.backend)
        printer.line(f"type {facts.type.name}, version {facts.version or 'unknown'}")
        if facts.others:
            others = [f"{other.name} ({other.device_type.name})" for other in facts.others]
            printer.line(f"device {facts.device.name}; others: {', '.join(others)}")
        printer.line(f"feature level {facts.feature_level}")
        if facts.free_bytes is not None:
            printer.line(f"free memory: {bytes_text(facts.free_bytes)}")
        numerics = facts.device.numerics
        departures = {  # from IEEE 754
            "NaN may be lost": not numerics.keeps_nan,
            "infinities may become the largest number": not numerics.keeps_infinity,
            "float16 sums are rounded to float16": numerics.sums_float16,
            "subnormal numbers are taken for zero": numerics.flushes_subnormals,
        }
        if any(departures.values()):
            held = [text for text, holds in departures.items() if holds]
            printer.line(f"floating point: {', '.join(held)}")
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
    unavailable = [report for report in reports if report.facts is None]
    if unavailable:
        printer.line("")
    for report in unavailable:
        printer.line(f"{report.backend} cannot be used: {report.reason}")


def _fields(facts: DeviceFacts) -> dict[str, object]:
    return {
        "backend": facts.backend,
        "type": facts.type.name,
        "version": facts.version,
        "device": facts.device.name,
        "other_devices": {other.name: other.device_type.name for other in facts.others},
        "feature_level": facts.feature_level,
        "free_bytes": facts.free_bytes,
        "numerics": facts.device.numerics,
        "extensions": facts.extensions,
        "num_cache_files": facts.num_cache_files,
        "num_data_cache_files": facts.num_data_cache_files,
        "figures": facts.figures and figures_fields(facts.figures),
        "figures_source": facts.figures_source.value if facts.figures else None,
    }


def figure_rows(figures: DeviceFigures | None) -> list[tuple[str, str, str]]:
    """Lines of a table of figures: subject, time and power.

    Types are named as NumPy names them; subjects that a device is as good at are one line.
    """
    if figures is None:
        return []
    named: list[tuple[str, PerformanceFigures | None]] = [
        *((_type_text(key), pair) for key, pair in figures.tensors.items()),
        ("float32, relaxed", figures.relaxed_tensor),
        *((f"{_type_text(key)} scalar", pair) for key, pair in figures.scalars.items()),
        ("float32 scalar, relaxed", figures.relaxed_scalar),
        ("IF", figures.if_),
        ("WHILE", figures.while_),
        *figures.extensions.items(),
    ]
    subjects: dict[tuple[str, str], list[str]] = {}
    for name, pair in named:
        if pair is not None:
            cells = f"{pair.exec_time:.3g}", f"{pair.power_usage:.3g}"
            subjects.setdefault(cells, []).append(name)
    is_complete = all(pair is not None for _, pair in named) and (
        figures.tensors.keys() & figures.scalars.keys() >= {*DataType}
    )
    if is_complete and len(subjects) == 1:
        return [("all types and operations", *cells) for cells in subjects]
    return [("; ".join(names), *cells) for cells, names in subjects.items()]


def _type_text(data_type: DataType) -> str:
    """The name of a type; quantised ones are told apart from those of whole numbers."""
    name = type_name(data_type.name)
    if not data_type.is_quantized:
        return name
    return f"{name}, symmetric" if data_type.is_symmetric else f"{name}, quantised"
