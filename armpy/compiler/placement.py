"""Placement report: which layer runs where, and why not elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace

from armpy.backend import CacheUse
from armpy.core.units import counted
from armpy.plugins.placement import Alternative
from armpy.types import BackendId, Preference


@dataclass(frozen=True, slots=True)
class Refusal:
    """A backend that did not take a layer.

    Parameters
    ----------
    layer_id : int
    layer, operation : str
        The layer's name, and its operation's.
    backend : str
    code : str
        Value of a `armpy.backend.ReasonCode`.
    text : str
        The backend's own words.
    """

    layer_id: int
    layer: str
    operation: str
    backend: BackendId
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LayerPlacement:
    """Placement of one layer of the optimised network.

    Parameters
    ----------
    layer_id : int
    layer, operation : str
    backend : str
    partition : int
        Number of the subgraph that the layer belongs to.
    origins : tuple of str
        Names of the model's layers that were made into this one; empty if it is one itself.
    inside : str
        Control flow layer, and which of its graphs, that this one belongs to: ``loop/body``;
        empty for layers of the model's own graph. Ids are unique in one graph.
    """

    layer_id: int
    layer: str
    operation: str
    backend: BackendId
    partition: int
    origins: tuple[str, ...] = ()
    inside: str = ""


@dataclass(frozen=True, slots=True)
class LateCompilation:
    """Compilation in the background, and what runs until it is done.

    Parameters
    ----------
    state : {"pending", "done", "failed"}
        Whether the backends' code is being compiled, has taken the place of what ran before, or
        could not be compiled.
    backends : tuple of str
        Whose code it is.
    where : str
        Where it is compiled, and why, if that is not in another process.
    calls : int
        Executions that began on what ran before.
    seconds : float
        From when it was asked for until its end, or until now.
    reason : str
        Why it failed; empty otherwise.
    """

    state: str
    backends: tuple[BackendId, ...]
    where: str
    calls: int
    seconds: float
    reason: str = ""

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
    """The placement report of an optimised network.

    Parameters
    ----------
    layers : tuple of LayerPlacement
        In order of execution.
    refusals : tuple of Refusal
        Every backend that was asked before the one that took the layer.
    layers_by_backend : dict of str to int
        How many of the model's layers each backend runs.
    fallbacks : int
        How many of the model's layers do not run on the first preferred backend. Those that it
        would take, and that are cheaper elsewhere, do not count.
    num_partitions, num_copies : int
        Subgraphs, and tensors copied between memories of backends.
    arena_bytes : dict of str to int
        Working memory per backend and execution.
    preference : str
        Value of the `armpy.Preference` that placement went by.
    basis : {"order", "estimated", "measured", "remembered"}
        Where the decision comes from: the backends' order, the figures of their devices, or
        measuring the alternatives, now or when the same was asked before.
    alternatives : tuple of Alternative
        What was weighed, the cheapest first; empty if the order of the backends decides. A report
        of several parts has those of each.
    cache_uses : tuple of CacheUse
        What was found compiled, and why other things were not; in order.
    compilation : LateCompilation, optional
        What is, or was, compiled while something else ran (``compile="background"``).
    """

    layers: tuple[LayerPlacement, ...]
    refusals: tuple[Refusal, ...]
    layers_by_backend: dict[BackendId, int]
    fallbacks: int
    num_partitions: int
    num_copies: int
    arena_bytes: dict[BackendId, int]
    preference: str = Preference.ORDER.value
    basis: str = "order"
    alternatives: tuple[Alternative, ...] = ()
    cache_uses: tuple[CacheUse, ...] = ()
    compilation: LateCompilation | None = None

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
        """The same for layers of a graph that a control flow layer runs."""
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
            text += f"; {self.fallbacks} fell back: {self._short_reasons()}"
        if self.alternatives:
            text += f"; {self.preference}, {self.basis}: "
            text += ", ".join(map(_short, self.alternatives))
        if self.cache_uses:
            hits = sum(use.is_hit for use in self.cache_uses)
            misses = len(self.cache_uses) - hits
            text += f"; cache: {counted(hits, 'hit')}, {counted(misses, 'miss', 'misses')}"
        if self.compilation is not None:
            text += f"; {self.compilation}"
        return text

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from armpy.compiler.notebooks import placement_html  # noqa: PLC0415 - for notebooks alone

        return placement_html(self)

    def _short_reasons(self) -> str:
        """The commonest refusals in a few words."""
        reasons = Counter((r.operation, r.backend, r.text) for r in self.refusals)
        parts = [
            f"{operation} x{count} refused by {backend} ({text})"
            # The text is one line of a log.
            for (operation, backend, text), count in reasons.most_common(3)
        ]
        if len(reasons) > len(parts):
            parts.append(f"{len(reasons) - len(parts)} more reasons in the placement report")
        return "; ".join(parts)

    def describe_alternatives(self) -> str:
        """One line per alternative, its costs and shares; empty if there were none."""
        lines = [f"{self.preference}, {self.basis}:"] if self.alternatives else []
        for alternative in self.alternatives:
            measured = alternative.measured_us
            lines.append(
                f"{'*' if alternative.is_chosen else ' '} {alternative.name:24}"
                f" estimated {alternative.estimated_us:11.1f} us  "
                + (f"measured {measured:11.1f} us  " if measured is not None else "")
                + ", ".join(f"{name} {n}" for name, n in alternative.layers_by_backend.items())
                + (f"  ({alternative.failure})" if alternative.failure else "")
            )
        return "\n".join(lines)

    def to_json(self, indent: int | None = None) -> str:
        """The complete report as JSON text."""
        return json.dumps(asdict(self) | {"peak_bytes": self.peak_bytes}, indent=indent)


def _short(alternative: Alternative) -> str:
    """An alternative and its cost in a few words."""
    cost, unit = alternative.measured_us, "us"
    if cost is None:
        cost, unit = alternative.estimated_us, "us estimated"
    chosen = " (chosen)" if alternative.is_chosen else ""
    return f"{alternative.name} {cost:.0f} {unit}{chosen}"
