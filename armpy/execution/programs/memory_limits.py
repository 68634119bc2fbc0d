"""Memory limit of single layers, checked before any backend is asked about them."""

from __future__ import annotations

from armpy.errors import MemoryQuotaError
from armpy.graph import Graph


def check_layers(
    graph: Graph,  # fully shaped
    limit_bytes: int,
) -> None:
    """Check every layer by itself.

    Raises MemoryQuotaError if a tensor cannot be an array, or what a layer writes is larger than
    the limit together with what computing it takes besides.

    What backends do before they know how much memory the whole takes, such as packing tables,
    goes by the sizes of tensors: none of these may be larger than the caller allows.
    """
    for value in graph.values():
        if not value.info.is_addressable:
            raise MemoryQuotaError(
                "a tensor has dimensions that no array can have",
                where=f"'{value.name}'",
                expected="as many bytes as the system's addresses reach",
                actual=str(value.info),
            )
    for layer in graph.layers:
        needed = sum(info.size_bytes for info in layer.output_infos)
        needed += layer.operation.scratch_bytes(layer.input_infos, layer.output_infos)
        if needed > limit_bytes:
            raise MemoryQuotaError(
                "one execution of the network needs too much memory",
                where=layer.where,
                expected=f"at most {limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{needed} bytes",
            )
