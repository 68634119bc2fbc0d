"""Loading networks and running them."""

from armpy.runtime.loaded_network import LoadedNetwork
from armpy.runtime.model import Model, TensorSpec
from armpy.runtime.options import RuntimeOptions
from armpy.runtime.runtime import DeviceSpec, Runtime

__all__ = [
    "DeviceSpec",
    "LoadedNetwork",
    "Model",
    "Runtime",
    "RuntimeOptions",
    "TensorSpec",
]
