"""HardwareAccelerator: kinds of devices that a compiled model may run on."""

from __future__ import annotations

import enum


class HardwareAccelerator(enum.IntFlag):
    """Kinds of devices, to be combined with ``|``."""

    CPU = enum.auto()
    GPU = enum.auto()
    NPU = enum.auto()
