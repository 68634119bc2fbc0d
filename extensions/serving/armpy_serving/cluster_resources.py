"""Resources of clusters: what this machine's devices are called where a scheduler counts them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.types import DeviceType

if TYPE_CHECKING:
    from armpy.compiler.devices import DeviceFacts

_PROCESSORS = (DeviceType.CPU_COMPILED, DeviceType.CPU_REFERENCE)


def resource_name(backend: str) -> str:
    """The resource that stands for a backend's devices."""
    return f"armpy_{backend}"


def ray_arguments(devices: Sequence[DeviceFacts]) -> str:
    """Arguments of ``ray start`` for a machine with these devices.

    Parameters
    ----------
    devices : sequence of DeviceFacts
        Devices as `armpy.Runtime.devices` has them.

    Returns
    -------
    str
        ``--resources`` and ``--labels``. There is no space in them, so that a shell takes
        ``ray start $(armpy ray-resources)`` for these two arguments.

    Notes
    -----
    A backend on the processor has as many units as there are processors, any other one for each of
    its devices. Ray counts units and nothing else: it hides no device from anybody.
    """
    counts = {
        resource_name(facts.backend): (os.cpu_count() or 1)
        if facts.type in _PROCESSORS
        else 1 + len(facts.others)
        for facts in devices
    }
    labels = ",".join(f"armpy/{facts.backend}={facts.type.name}" for facts in devices)
    return f"--resources={json.dumps(counts, separators=(',', ':'))} --labels={labels}"
