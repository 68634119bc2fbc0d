"""Placement of a model's layers, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass

if TYPE_CHECKING:
    from armpy.compiler import Placement, Refusal


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """Placement of a model's layers."""

    text: str  # the same in words
    layers: int  # of the model
    layers_by_backend: dict[str, int]
    fallbacks: int  # layers that do not run on the first preferred backend, though it was asked
    # Parts that backends run, and tensors copied between their memories.
    partitions: int
    copies: int
    working_memory_bytes: int  # of one execution
    # As of `armpy.compiler.Placement`.
    preference: str
    basis: str
    # Compiled parts that were found, and missing ones.
    cache_hits: int
    cache_misses: int
    refusals: tuple[Refusal, ...]

    @classmethod
    def of(cls, placement: Placement) -> PlacementReport:
        """Summarise a model's placement."""
        hits = sum(use.is_hit for use in placement.cache_uses)
        return cls(
            str(placement),
            sum(placement.layers_by_backend.values()),
            dict(placement.layers_by_backend),
            placement.fallbacks,
            placement.num_partitions,
            placement.num_copies,
            placement.peak_bytes,
            placement.preference,
            placement.basis,
            hits,
            len(placement.cache_uses) - hits,
            placement.refusals,
        )
