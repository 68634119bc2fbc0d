"""Layers of a model as a report shows them: what they are, where they run, what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from armpy.devices.work import type_class, work_of
from armpy.graph import Graph, Layer
from armpy.reporting.names import short_names
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.optimizer import Placement
    from armpy.profiling import Share, Summary
    from armpy.runtime import Model

TOGETHER = " + "
"""Between the names of layers that a backend computes as one."""


@dataclass(slots=True)
class LayerRow:
    """A layer.

    Parameters
    ----------
    name, short : str
    operation, precision, shape : str
        Precision is a class of types: ``float32``, ``quant8``.
    backend : str
        Empty if it is not known.
    inputs : list of int
        Numbers of the layers that it reads from.
    origins : tuple of str
        Layers of the file that it was made from, if it was.
    refusals : list of (str, str)
        Backends that were asked before, and their reasons.
    operations, bytes_moved, weight_bytes, output_bytes : float
    time_us : float, optional
        Of one execution, together with the layers in `company`.
    company : tuple of str
        Names of layers that its backend computes with it.
    error, total_error : float, optional
        Relative to the numbers of CpuRef: of the layer by itself, and of all up to it.
    """

    name: str
    short: str
    operation: str
    precision: str
    shape: str
    backend: str = ""
    inputs: list[int] = field(default_factory=list)
    origins: tuple[str, ...] = ()
    refusals: list[tuple[str, str]] = field(default_factory=list)
    operations: float = 0.0
    bytes_moved: float = 0.0
    weight_bytes: int = 0
    output_bytes: int = 0
    time_us: float | None = None
    company: tuple[str, ...] = ()
    error: float | None = None
    total_error: float | None = None


def graph_of(model: Model) -> Graph:
    """The graph whose layers backends were asked to take; the model's as long as there is none."""
    optimized = model.runtime.get_network(model.network_id).optimized
    return model.graph if optimized is None else optimized.source


def layer_rows(model: Model, summary: Summary | None) -> list[LayerRow]:
    """The layers of a model, those within control flow left out.

    Parameters
    ----------
    model : Model
    summary : Summary, optional
        Of a profile.
    """
    optimized = model.runtime.get_network(model.network_id).optimized
    graph = graph_of(model)
    shorts = short_names([layer.name for layer in graph.layers])
    numbers = {value: n for n, layer in enumerate(graph.layers) for value in layer.outputs}
    assignment = {} if optimized is None else optimized.assignment
    backends = _backends_by_name(model.placement)
    rows = []
    for layer, short in zip(graph.layers, shorts, strict=True):
        row = _row(layer, short)
        row.backend = assignment.get(layer.id) or backends.get(layer.name, "")
        row.inputs = list(dict.fromkeys(numbers[v] for v in layer.inputs if v in numbers))
        rows.append(row)
    by_name = {row.name: row for row in rows}
    for refusal in model.placement.refusals if model.placement is not None else ():
        if refusal.layer in by_name:
            by_name[refusal.layer].refusals.append((refusal.backend, refusal.text))
    if summary is not None:
        _add_times(by_name, summary.layers, summary.num_executions)
    return rows


def _row(layer: Layer, short: str) -> LayerRow:
    """What a layer is."""
    work = work_of(layer.operation, layer.input_infos, layer.output_infos)
    constants = [value.data for value in layer.inputs if value is not None]
    outputs = [info.size_bytes for info in layer.output_infos if info.is_fully_shaped]
    return LayerRow(
        layer.name,
        short,
        layer.operation.name,
        type_class(layer.input_infos, layer.output_infos),
        ", ".join(format_shape(info.shape) for info in layer.output_infos),
        origins=layer.origins,
        operations=work.flops,
        bytes_moved=work.size_bytes,
        weight_bytes=sum(data.nbytes for data in constants if data is not None),
        output_bytes=sum(outputs),
    )


def _backends_by_name(placement: Placement | None) -> dict[str, str]:
    """Who runs which layer, also those that have become a part of another one."""
    found: dict[str, str] = {}
    for placed in placement.layers if placement is not None else ():
        if not placed.inside:
            for name in (placed.layer, *placed.origins):
                found.setdefault(name, placed.backend)
    return found


def _add_times(rows: Mapping[str, LayerRow], shares: Sequence[Share], num_executions: int) -> None:
    """Tell layers what they take; time within control flow is its layer's."""
    for share in shares:
        members = members_of(share.layer, rows)
        for name in members:
            row = rows[name]
            row.time_us = (row.time_us or 0.0) + share.total_us / max(num_executions, 1)
            row.company = tuple(other for other in members if other != name)


def members_of(name: str, known: Mapping[str, object]) -> list[str]:
    """The layers that a measured name stands for: itself, its parts, or what it lies within."""
    if name in known:
        return [name]
    parts = name.split(TOGETHER)
    if len(parts) > 1 and all(part in known for part in parts):
        return parts
    while "/" in name:
        name = name.rpartition("/")[0]
        if name in known:
            return [name]
    return []
