"""Networks that programs build with `INetwork`, made into graphs of armpy."""

from armpy_compat.pyarmnn.lowering.network_graph import LoweredNetwork, lower_network

__all__ = ["LoweredNetwork", "lower_network"]
