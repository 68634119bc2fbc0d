"""Records of one backend's device on one machine, and their written form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from armpy.backend import DeviceFigures
from armpy.compiler.devices import FigureSource
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.plugins.proxy.figures import figures_fields, figures_from
from armpy.types import BackendId
from armpy_tools.devices.costs import BackendCosts, CopyRate, Rate

Fields = dict[str, Any]
"""A JSON object."""  # Any: whatever JSON has


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement.

    Parameters
    ----------
    seconds : float
        Of one execution.
    power : float
        Processors that were busy meanwhile, all together.
    """

    seconds: float
    power: float = 1.0


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """Measurements of one backend.

    Parameters
    ----------
    backend, version : str
        Whose figures they are; those of another version do not count.
    figures : DeviceFigures
        Against CpuRef.
    costs : BackendCosts
        In seconds.
    measured_s : float
        When, in seconds since 1970.
    samples : mapping of str to Sample
        The measurements, by the workload's name.
    """

    backend: BackendId
    version: str
    figures: DeviceFigures
    costs: BackendCosts
    measured_s: float = 0.0
    samples: Mapping[str, Sample] = field(default_factory=dict)


def record_fields(record: DeviceRecord) -> Fields:
    """A record as a JSON object."""
    return {
        "backend": record.backend,
        "version": record.version,
        "measured_s": record.measured_s,
        "figures": figures_fields(record.figures),
        "costs": costs_fields(record.costs),
        "samples": {
            name: [sample.seconds, sample.power] for name, sample in record.samples.items()
        },
    }


def record_from(fields: Fields) -> DeviceRecord:
    """The record that `record_fields` made an object of.

    Raises
    ------
    ValueError
        If it is not such an object.
    """
    try:
        return DeviceRecord(
            _text(fields["backend"]),
            _text(fields["version"]),
            figures_from(fields["figures"], fields["backend"]),
            _costs_from(fields["costs"]),
            _number(fields["measured_s"]),
            {_text(k): Sample(*map(_number, pair)) for k, pair in fields["samples"].items()},
        )
    # The file can hold any JSON, and its checksum does not cover the structure.
    except (KeyError, TypeError, AttributeError, ArmpyError) as error:
        raise ValueError(f"it is not a record of a device: {error}") from error


def costs_fields(costs: BackendCosts) -> Fields:
    """Costs as a JSON object."""
    return {
        "backend": costs.backend,
        "source": costs.source.value,
        "rates": {
            key: [rate.overhead_s, rate.flop_s, rate.byte_s, rate.power]
            for key, rate in costs.rates.items()
        },
        "part_s": costs.part_s,
        "copy_in": [costs.copy_in.overhead_s, costs.copy_in.byte_s],
        "copy_out": [costs.copy_out.overhead_s, costs.copy_out.byte_s],
        "shares_host_memory": costs.shares_host_memory,
    }


def _costs_from(fields: Fields) -> BackendCosts:
    """Costs of an object, checked."""
    rates: Mapping[str, list[object]] = fields["rates"]
    return BackendCosts(
        _text(fields["backend"]),
        FigureSource(fields["source"]),
        {_text(key): Rate(*map(_number, numbers)) for key, numbers in rates.items()},
        _number(fields["part_s"]),
        CopyRate(*map(_number, fields["copy_in"])),
        CopyRate(*map(_number, fields["copy_out"])),
        bool(fields["shares_host_memory"]),
    )


def _number(value: object) -> float:
    """A number of a file: finite, and not below 0."""
    # One NaN or negative time would decide every placement.
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{value!r} is neither a time nor a power")
    return float(value)


def _text(value: object) -> str:
    """A text of a file."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")  # noqa: TRY004 - a file's mistake, no caller's
    return value
