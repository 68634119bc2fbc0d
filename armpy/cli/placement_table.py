"""Placement of a model's layers, as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.compiler import Placement


@dataclass(frozen=True, slots=True)
class RefusedLayers:
    """Layers of one operation that a backend did not take.

    Parameters
    ----------
    operation, backend, reason : str
    count : int
        Of layers.
    """

    operation: str
    backend: str
    reason: str
    count: int


def refused_layers(placement: Placement) -> tuple[RefusedLayers, ...]:
    """Why layers do not run where they would have been preferred, the commonest reason first."""
    refused = Counter((r.operation, str(r.backend), r.text) for r in placement.refusals)
    return tuple(
        RefusedLayers(operation, backend, text, count)
        for (operation, backend, text), count in refused.most_common()
    )


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """Placement of a model's layers.

    Parameters
    ----------
    text : str
        The same in words.
    layers : int
        Of the model.
    layers_by_backend : dict of str to int
    fallbacks : int
        Layers that do not run on the first preferred backend, though it was asked.
    partitions, copies : int
        Parts that backends run, and tensors copied between their memories.
    working_memory_bytes : int
        Of one execution.
    preference, basis : str
        As of `armpy.compiler.Placement`.
    cache_hits, cache_misses : int
        What was found compiled, and what was not.
    refusals : tuple of RefusedLayers
        The commonest first.
    """

    text: str
    layers: int
    layers_by_backend: dict[str, int]
    fallbacks: int
    partitions: int
    copies: int
    working_memory_bytes: int
    preference: str
    basis: str
    cache_hits: int
    cache_misses: int
    refusals: tuple[RefusedLayers, ...]

    @classmethod
    def of(cls, placement: Placement) -> PlacementReport:
        """What a model's placement says."""
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
            refused_layers(placement),
        )
