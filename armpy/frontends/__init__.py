"""Front-ends: each turns something foreign into a `armpy.graph.network.Network`."""
