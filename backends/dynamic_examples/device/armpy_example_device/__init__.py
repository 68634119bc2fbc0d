"""An example of a backend for a device with memory and a queue of its own, simulated."""

from armpy_example_device.backend import ExampleDeviceBackend
from armpy_example_device.device import Device

__all__ = ["Device", "ExampleDeviceBackend"]
