"""Layers of a network that ran on a backend, for the kit and ``armpy doctor``."""

from __future__ import annotations

from collections.abc import Iterable

from armpy.backend import ReasonCode
from armpy.compiler import Placement
from armpy.graph import Layer
from armpy.ops import MemCopy
from armpy.types import BackendId


def layers_run(placement: Placement | None, backend_id: BackendId) -> frozenset[str]:
    """Names of a network's layers whose answers a backend has given, and of what these stand for.

    Parameters
    ----------
    placement : Placement or None
        Of a network that has been executed; None if it never had a program.

    Notes
    -----
    A layer ran on the backend if the core has called a workload of the backend that stands for
    it, alone or with others. Layers that the core folds, another backend runs, or the backend
    gives back or takes out (`OptimizationViews.failed`, ``deleted``), and copies between
    memories have not run on it.
    """
    if placement is None:
        return frozenset()
    return frozenset(
        name
        for layer in placement.layers
        if layer.backend == backend_id and layer.operation != MemCopy.__name__
        for name in (layer.layer, *layer.origins)
    )


def layers_refused(
    placement: Placement | None, backend_id: BackendId, code: ReasonCode
) -> dict[str, str]:
    """Layers that a backend said yes to and did not run after all: its words by layer's name.

    Parameters
    ----------
    code : ReasonCode
        COMPILATION for layers it gave back, PREPARATION for those it failed to prepare.
    """
    refusals = () if placement is None else placement.refusals
    return {
        refusal.layer: refusal.text
        for refusal in refusals
        if refusal.backend == backend_id and refusal.code == code.value
    }


def kind_of(layer: Layer) -> str:
    """A layer's operation and the type of its input, for counts of claimed and executed layers."""
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    return f"{layer.operation.name} {infos[0].data_type.name}" if infos else layer.operation.name


def kinds_run(
    layers: Iterable[Layer], placement: Placement | None, backend_id: BackendId
) -> tuple[str, ...]:
    """`kind_of` those of some layers that ran on a backend."""
    names = layers_run(placement, backend_id)
    return tuple(kind_of(layer) for layer in layers if layer.name in names)
