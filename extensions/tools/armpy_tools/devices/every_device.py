"""Every device of every backend, to measure them beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armpy.execution import Runtime, RuntimeOptions
from armpy.types import BackendId


class DeviceChoice(NamedTuple):
    """A device and its backend."""

    backend: BackendId
    device: str  # the backend's option ``device``; empty if the backend has one device

    @property
    def options(self) -> tuple[str, ...]:
        """The choice as options of the command line, ``BACKEND.device=DEVICE``."""
        return (f"{self.backend}.device={self.device}",) if self.device else ()


def every_device(dynamic_backends_path: Sequence[str] = ()) -> list[DeviceChoice]:
    """List the devices of all backends that can be used on this machine, most preferred first.

    Parameters
    ----------
    dynamic_backends_path : sequence of str
        Directories of further backends.

    Raises
    ------
    BackendError
        If a backend declares what it may not.
    """
    options = RuntimeOptions(dynamic_backends_path=dynamic_backends_path)
    with Runtime(options) as runtime:
        return [
            DeviceChoice(facts.backend, device.name if facts.others else "")
            for facts in runtime.devices
            for device in (facts.device, *facts.others)
        ]
