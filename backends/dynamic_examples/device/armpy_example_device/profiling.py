"""Measurements of the device for the profile of one network."""

from __future__ import annotations

from armpy.backend import Counter, CounterKind, IBackendProfiling, Measurement
from armpy.ops.operation import Array
from armpy_example_device.device import Device, Region

COUNTERS = (
    Counter("uploads", "", CounterKind.TOTAL, "Transfers to the device."),
    Counter("downloads", "", CounterKind.TOTAL, "Transfers from the device."),
    Counter("bytes uploaded", "B", CounterKind.TOTAL, "Bytes of all uploads."),
    Counter("bytes downloaded", "B", CounterKind.TOTAL, "Bytes of all downloads."),
    Counter("commands", "", CounterKind.TOTAL, "Commands that came to their end."),
    Counter("device memory", "B", CounterKind.GAUGE, "Memory in use, when a command ended."),
)


class Transfers:
    """A device's transfers and commands that belong to one network.

    Parameters
    ----------
    profiling : IBackendProfiling, optional
        None if the network is not profiled.
    """

    def __init__(self, device: Device, profiling: IBackendProfiling | None = None) -> None:
        self._device = device
        self._profiling = profiling

    def upload(self, region: Region, source: Array) -> None:
        """Copy elements to the device."""
        self._device.upload(region, source)
        self._count("uploads", 1)
        self._count("bytes uploaded", source.nbytes)

    def download(self, region: Region, target: Array) -> None:
        """Copy elements from the device."""
        self._device.download(region, target)
        self._count("downloads", 1)
        self._count("bytes downloaded", target.nbytes)

    def report(self, event: Measurement) -> None:
        """Pass on what a command took."""
        if self._profiling is not None:
            self._profiling.add_event(event)
            self._count("commands", 1)
            self._count("device memory", self._device.allocated_bytes)

    def _count(self, name: str, value: float) -> None:
        """Add to a counter of the network."""
        if self._profiling is not None:
            self._profiling.add_to_counter(name, value)


def declare_counters(profiling: IBackendProfiling) -> None:
    """Announce everything that the device counts."""
    for counter in COUNTERS:
        profiling.declare_counter(counter)
