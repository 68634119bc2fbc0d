"""Placement report: which layer runs where, and why not elsewhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from armpy.backend import CacheUse, ReasonCode, Support
from armpy.backend.caches import KEEPS_NOTHING
from armpy.core.dataclass import dataclass
from armpy.core.documents import document_of
from armpy.core.units import counted
from armpy.plugins.placement import Alternative
from armpy.types import BackendId, Preference

_COUNTED = re.compile(r"(\d+) (\w+?)s?\b( from (?!')[^':]*)?")
"""Number, noun and origin in `CacheUse.what`; a name of a layer is no origin."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A layer, a backend that did not take it, and its answer."""

    layer_id: int
    layer: str
    operation: str
    """Name of the layer's operation."""
    backend: BackendId
    support: Support
    """The backend's own answer, or the core's for it."""

    @property
    def code(self) -> str:
        """Value of the answer's `armpy.backend.ReasonCode`."""
        return (self.support.code or ReasonCode.OTHER).value

    @property
    def text(self) -> str:
        """The reason, in the backend's words."""
        return self.support.text


_MOST_NAMED = 3
"""Reasons, and operations of each, in the text of a placement, which is one line of a log."""


def counted_refusals(refusals: Iterable[Refusal]) -> list[tuple[int, Refusal]]:
    """The first refusal of each operation by each backend for each reason, with their number.

    The commonest come first.
    """
    firsts: dict[tuple[str, BackendId, str], Refusal] = {}
    counts: Counter[tuple[str, BackendId, str]] = Counter()
    for refusal in refusals:
        key = (refusal.operation, refusal.backend, refusal.text)
        firsts.setdefault(key, refusal)
        counts[key] += 1
    return [(count, firsts[key]) for key, count in counts.most_common()]


@dataclass(frozen=True, slots=True)
class LayerPlacement:
    """Placement of one layer of the optimised network."""

    layer_id: int
    """Unique in one graph."""
    layer: str
    operation: str
    backend: BackendId
    partition: int
    """Number of the subgraph that the layer belongs to; -1 for copies."""
    origins: tuple[str, ...] = ()
    """Names of the model's layers that were made into this one; empty if it is one itself."""
    inside: str = ""
    """Control flow layer and its graph that this layer belongs to, such as ``loop/body``; empty for
    layers of the model's own graph."""


@dataclass(frozen=True, slots=True)
class LateCompilation:
    """Compilation in the background, and the executions before its end."""

    state: str
    """``pending``; ``done``: the code has replaced what ran before; or ``failed``."""
    backends: tuple[BackendId, ...]
    where: str
    """Place where the code is compiled, and the reason if that is not another process."""
    calls: int
    """Executions that began on what ran before."""
    seconds: float
    """Seconds from the request until the end, or until now."""
    reason: str = ""
    """Why it failed; empty otherwise."""

    def __str__(self) -> str:
        names = ", ".join(self.backends)
        before = f"after {counted(self.calls, 'call')} and {self.seconds:.1f} s"
        if self.state == "done":
            return f"{names} took over {before}"
        if self.state == "failed":
            return f"{names} failed to compile {before}: {self.reason}"
        return f"{names} is compiling {self.where} and takes over then, so far {before}"


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement report of an optimised network."""

    layers: tuple[LayerPlacement, ...]
    """Layers in order of execution."""
    refusals: tuple[Refusal, ...]
    """Every backend that was asked before the one that took the layer."""
    layers_by_backend: dict[BackendId, int]
    """Number of the model's layers that each backend runs."""
    fallbacks: int
    """Number of the model's layers that do not run on the first preferred backend. Those that it
    would take, and that are cheaper elsewhere, do not count."""
    num_partitions: int
    """Number of subgraphs."""
    num_copies: int
    """Number of tensors copied between memories of backends."""
    arena_bytes: dict[BackendId, int]
    """Working memory per backend and execution."""
    preference: str = Preference.ORDER.value
    """Value of the `armpy.Preference` that placement went by."""
    basis: str = "order"
    """Reason of the placement: ``order``, that of the backends; otherwise that of the plugin which
    decided. armpy-tools has ``estimated``, from figures of devices."""
    alternatives: tuple[Alternative, ...] = ()
    """Compared placements, the cheapest first; empty if the order of backends decides. A report of
    several parts has those of each."""
    cache_uses: tuple[CacheUse, ...] = ()
    """Compiled parts that were found, and why others were not; in order."""
    compilation: LateCompilation | None = None
    """Parts compiled while something else ran (``compile="background"``)."""

    @property
    def peak_bytes(self) -> int:
        """Working memory of one execution on all backends together."""
        return sum(self.arena_bytes.values())

    def followed_by(self, other: Placement) -> Placement:
        """One report for two parts of a network."""
        first = self.num_partitions
        moved = (
            # Copies are -1, in no partition of either report.
            replace(layer, partition=layer.partition + first) if layer.partition >= 0 else layer
            for layer in other.layers
        )
        return Placement(
            (*self.layers, *moved),
            self.refusals + other.refusals,
            dict(Counter(self.layers_by_backend) + Counter(other.layers_by_backend)),
            self.fallbacks + other.fallbacks,
            self.num_partitions + other.num_partitions,
            self.num_copies + other.num_copies,
            dict(Counter(self.arena_bytes) + Counter(other.arena_bytes)),
            self.preference,
            self.basis,
            self.alternatives + other.alternatives,
            self.cache_uses + other.cache_uses,
            self.compilation or other.compilation,
        )

    def inside(self, where: str) -> Placement:
        """Return this report with its layers named as inside a graph of a control flow layer."""
        layers = (
            replace(layer, inside=f"{where}/{layer.inside}" if layer.inside else where)
            for layer in self.layers
        )
        return replace(self, layers=tuple(layers))

    def __str__(self) -> str:
        total = sum(self.layers_by_backend.values())
        shares = ", ".join(f"{name} {count}" for name, count in self.layers_by_backend.items())
        text = f"{counted(total, 'layer')}: {shares or 'nothing to run'}"
        text += f"; {counted(self.num_partitions, 'partition')}"
        text += f", {counted(self.num_copies, 'copy', 'copies')}"
        text += f", {self.peak_bytes / 1024:.0f} KiB working memory"
        if self.fallbacks:
            text += f"; {self.fallbacks} fell back"
            text += f": {self._short_reasons()}" if self.refusals else ""
        if self.alternatives:
            text += f"; {self.preference}, {self.basis}: "
            text += ", ".join(map(_short, self.alternatives))
        # Not what is never kept: the next load compiles it again.
        looked_up = [
            use for use in self.cache_uses if use.is_hit or not use.reason.endswith(KEEPS_NOTHING)
        ]
        for where, is_hit in (("found on disk", True), ("made now", False)):
            parts = [use.what for use in looked_up if use.is_hit is is_hit]
            if parts:
                text += f"; {where}: {', '.join(_summed(parts))}"
        if self.compilation is not None:
            text += f"; {self.compilation}"
        return text

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from armpy.compiler.notebooks import placement_html  # noqa: PLC0415 - for notebooks alone

        return placement_html(self, counted_refusals(self.refusals))

    def _short_reasons(self) -> str:
        """The commonest refusals in a few words."""
        operations: dict[tuple[BackendId, str], list[str]] = {}
        for count, refusal in counted_refusals(self.refusals):
            same_reason = operations.setdefault((refusal.backend, refusal.text), [])
            same_reason.append(f"{refusal.operation} x{count}")
        parts = []
        for (backend, reason), counts in list(operations.items())[:_MOST_NAMED]:
            shown = ", ".join(counts[:_MOST_NAMED])
            if len(counts) > _MOST_NAMED:
                shown += f" and {len(counts) - _MOST_NAMED} more"
            parts.append(f"{shown} refused by {backend} ({reason})")
        if len(operations) > len(parts):
            parts.append(f"{len(operations) - len(parts)} more reasons in the placement report")
        return "; ".join(parts)

    def describe_alternatives(self) -> str:
        """One line per alternative, its costs and shares; empty if there were none."""
        lines = [f"{self.preference}, {self.basis}:"] if self.alternatives else []
        for alternative in self.alternatives:
            lines.append(
                f"{'*' if alternative.is_chosen else ' '} {alternative.name:24}"
                f" estimated {alternative.estimated_us:11.1f} us  "
                + ", ".join(f"{name} {n}" for name, n in alternative.layers_by_backend.items())
            )
        return "\n".join(lines)

    def to_json(self, indent: int | None = None) -> str:
        """The complete report as JSON text."""
        return json.dumps(document_of(self) | {"peak_bytes": self.peak_bytes}, indent=indent)


def _summed(parts: Iterable[str]) -> Iterable[str]:
    """Sums of what looking into caches was for, by noun and origin: ``11 kernels from packs``."""
    sums: Counter[tuple[str, str]] = Counter()
    for what in parts:
        match = _COUNTED.match(what)
        sums[(match[2], match[3] or "") if match else (what, "")] += int(match[1]) if match else 0
    for (noun, origin), count in sums.items():
        yield f"{counted(count, noun)}{origin}" if count else noun


def _short(alternative: Alternative) -> str:
    """An alternative and its cost in a few words."""
    chosen = " (chosen)" if alternative.is_chosen else ""
    return f"{alternative.name} {alternative.estimated_us:.0f} us estimated{chosen}"
