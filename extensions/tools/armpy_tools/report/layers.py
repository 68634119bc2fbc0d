"""Layers of a model's file as a report shows them: kinds, shapes and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.core.units import type_name
from armpy.inspect import LayerFacts, LayerStatus, ModelFacts
from armpy.profiling import TOGETHER, Quartiles, short_names
from armpy_tools.pages import shape_text

if TYPE_CHECKING:
    from armpy.graph import Graph
    from armpy.model import Model
    from armpy.profiling import Share
    from armpy_tools.report.run_times import RunTimes


@dataclass(slots=True)
class LayerRow:
    """A layer of the file, and its measurements."""

    facts: LayerFacts
    short: str  # its name, as short as it stays its own
    inputs: list[int] = field(default_factory=list)  # numbers of the layers that it reads from
    # Of one execution, together with the layers in `company`: the report's estimate, and the
    # quartiles of all runs.
    time_us: float | None = None
    quartiles_us: Quartiles | None = None
    company: tuple[str, ...] = ()  # short names of the layers that its backend computes with it
    # Relative to the numbers of CpuRef: of the layer by itself, and of all up to it.
    error: float | None = None
    total_error: float | None = None

    @property
    def title(self) -> str:
        """The operator and the short name."""
        return f"{self.facts.operator} {self.short}"

    @property
    def shape(self) -> str:
        """Shape of the first output."""
        return shape_text(self.facts.shape)

    @property
    def type(self) -> str:
        """Type of the first output."""
        return type_name(self.facts.type)

    @property
    def where(self) -> str:
        """The backend, or the layer's outcome."""
        if self.facts.backends:
            return ", ".join(self.facts.backends)
        return "not known" if self.facts.status is LayerStatus.UNPLACED else self.facts.status.value


class LayerRows:
    """All layers of a model's file."""

    def __init__(self, facts: ModelFacts) -> None:
        shorts = short_names(_path(layer, layer.name) for layer in facts.layers)
        self.rows = [
            LayerRow(layer, shorts[_path(layer, layer.name)], _inputs(layer, facts))
            for layer in facts.layers
        ]
        self._by_name: dict[str, LayerRow] = {}
        for row in self.rows:
            for name in (*row.facts.layer_names, row.facts.name):
                self._by_name.setdefault(_path(row.facts, name), row)

    def members(self, name: str) -> list[LayerRow]:
        """The layers that a name in a profile stands for: itself, its parts, its enclosing layers.

        Parameters
        ----------
        name : str
            As `armpy.profiling.Share.layer` has it.
        """
        parts = [name] if name in self._by_name else name.split(TOGETHER)
        if all(part in self._by_name for part in parts):
            return list({id(self._by_name[part]): self._by_name[part] for part in parts}.values())
        while "/" in name:
            name = name.rpartition("/")[0]
            if name in self._by_name:
                return [self._by_name[name]]
        return []

    def add_times(self, times: RunTimes) -> None:
        """Add the times of a profile to the layers."""
        for share in times.summary.layers:
            members = self.members(share.layer) if share.layer else []
            quartiles = share.quartiles_us(times.summary.num_executions)
            for row in members:
                row.time_us = (row.time_us or 0.0) + times.time_us(share)
                known = row.quartiles_us or (0.0, 0.0, 0.0)
                row.quartiles_us = Quartiles(*map(sum, zip(known, quartiles, strict=True)))
                row.company = tuple(other.short for other in members if other is not row)

    def kind(self, share: Share) -> str:
        """The kind of layer that a share of the time is of, by the file's names."""
        members = self.members(share.layer) if share.layer else []
        kinds = dict.fromkeys(row.facts.operator for row in members)
        return TOGETHER.join(kinds) or share.name

    def path(self, share: Share) -> str:
        """The name of the first layer that a share is of, after those of its control flow."""
        members = self.members(share.layer)
        return _path(members[0].facts, members[0].facts.name) if members else share.layer

    def name(self, layer: str, operation: str) -> tuple[str, str]:
        """Return the operator and the short name of a layer of the network.

        Both are the file's. Where several layers of the network make up one of the file, what this
        one is called within it is added.

        Parameters
        ----------
        layer, operation : str
            Names in the network.
        """
        members = self.members(layer)
        if len(members) != 1:
            return operation, short_names([layer])[layer]
        (row,) = members
        whole = _path(row.facts, row.facts.name)
        if layer == whole or [_path(row.facts, n) for n in row.facts.layer_names] == [layer]:
            return row.facts.operator, row.short
        return row.facts.operator, f"{row.short}/{layer.rpartition('/')[2]}"

    def title(self, share: Share) -> str:
        """Return the title of a share of the time: kind and short names."""
        members = self.members(share.layer) if share.layer else []
        if not members:
            return share.name
        return f"{self.kind(share)} {TOGETHER.join(row.short for row in members)}"


def _path(layer: LayerFacts, name: str) -> str:
    """A name after those of the control flow that it lies in, as profiles have it."""
    return f"{layer.inside}/{name}" if layer.inside else name


def _inputs(layer: LayerFacts, facts: ModelFacts) -> list[int]:
    """The layers that another one reads from."""
    producers = (facts.tensors[place].producer for place in layer.inputs if place >= 0)
    return list(dict.fromkeys(number for number in producers if number is not None))


def layers_as_run(rows: Sequence[LayerRow]) -> list[list[int]]:
    """Groups of layers that a backend computes as one, by their numbers, in order of the last.

    A layer that was fused into another one is in its group.
    """
    by_short = {row.short: number for number, row in enumerate(rows)}
    by_name = {_path(row.facts, row.facts.name): number for number, row in enumerate(rows)}
    group_of = {number: [number] for number in range(len(rows))}
    for number, row in enumerate(rows):
        partners = [by_short[name] for name in row.company]
        if row.facts.status is LayerStatus.FUSED:
            owner = by_name.get(_path(row.facts, row.facts.into))
            partners += [] if owner is None else [owner]
        for partner in partners:
            if group_of[partner] is not group_of[number]:
                group_of[number] += group_of[partner]
                group_of |= dict.fromkeys(group_of[number], group_of[number])
    groups = {id(group): sorted(group) for group in group_of.values()}
    return sorted(groups.values(), key=lambda group: group[-1])


def graph_of(model: Model) -> Graph:
    """The graph whose layers backends were asked to take; the model's as long as there is none."""
    optimized = model.runtime.get_network(model.network_id).optimized
    return model.graph if optimized is None else optimized.source


def times_by_backend(times: RunTimes) -> dict[str, float]:
    """Microseconds of a run in layers, by the backend that ran them."""
    by_backend: dict[str, float] = {}
    for share in times.summary.layers:
        by_backend[share.backend] = by_backend.get(share.backend, 0.0) + times.time_us(share)
    return by_backend
