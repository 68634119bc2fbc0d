"""Front-ends: each turns something foreign into a `armpy.network.Network`."""
