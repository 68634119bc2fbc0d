"""Placement of a model's layers, as commands write it in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.core.documents import plain

if TYPE_CHECKING:
    from armpy.compiler import Placement


def placement_document(placement: Placement) -> dict[str, object]:
    """The report of a placement without its single layers, and with its text."""
    hits = sum(use.is_hit for use in placement.cache_uses)
    return {
        "text": str(placement),
        "layers": sum(placement.layers_by_backend.values()),
        "layers_by_backend": dict(placement.layers_by_backend),
        "fallbacks": placement.fallbacks,
        "partitions": placement.num_partitions,
        "copies": placement.num_copies,
        "working_memory_bytes": placement.peak_bytes,
        "preference": placement.preference,
        "basis": placement.basis,
        "cache_hits": hits,
        "cache_misses": len(placement.cache_uses) - hits,
        "refusals": plain(placement.refusals),
    }
