"""Summary of a profile: where all of the time went, nothing twice and nothing left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from armpy.core.dataclass import dataclass
from armpy.profiling.events import EventKind, ProfilingEvent
from armpy.profiling.naming import short_names
from armpy.profiling.nesting import EventNode, nested
from armpy.profiling.quartiles import Quartiles, quartiles_of

BETWEEN = "around layers"
"""Overhead of executions themselves: binding arrays, calling one layer after the other."""

_SHOWN = 10
"""Layers in the text of a summary; the object has all."""

AROUND = "around commands"
"""Overhead of a backend: what layers that are several of the model's take beside these."""


@dataclass(slots=True)
class Share:
    """A part of the time."""

    name: str
    """Name for people: a layer as ``Convolution2d 'conv_3'``, an operation, the cause of a wait."""
    backend: str = ""
    """Empty for armpy itself."""
    operation: str = ""
    layer: str = ""
    """`operation` and `layer`: of a layer; empty for other events."""
    count: int = 0
    """Number of events."""
    total_ns: int = 0
    """Time of all executions together, in nanoseconds."""
    details: dict[str, float] = field(default_factory=dict)
    """Sums of what backends say about it; see `armpy.backend.Measurement`."""
    run_ns: list[int] = field(default_factory=list)
    """Time in each execution, in order; empty in profiles of earlier versions."""

    @property
    def total_us(self) -> float:
        """All executions together, in microseconds."""
        return self.total_ns / 1000

    def quartiles_us(self, num_executions: int) -> Quartiles:
        """Quartiles of the time in one execution; the mean in profiles of earlier versions."""
        if not self.run_ns:
            mean_us = self.total_us / max(num_executions, 1)
            return Quartiles(mean_us, mean_us, mean_us)
        missing = [0] * (num_executions - len(self.run_ns))
        return quartiles_of([ns / 1000 for ns in (*self.run_ns, *missing)])

    def add_run(self, run: int, time_ns: int) -> None:
        """Add time of an execution."""
        self.run_ns += [0] * (run + 1 - len(self.run_ns))
        self.run_ns[run] += time_ns


class Shares:
    """Time by its use."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, str], Share] = {}

    def add(
        self,
        name: str,
        backend: str,
        total_ns: int,
        operation: str = "",
        layer: str = "",
        event: ProfilingEvent | None = None,
        count: int = 1,
        run: int | None = None,
    ) -> Share:
        """Add time, and what a backend says about it; `run` is the number of the execution."""
        key = (name, backend)
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = Share(name, backend, operation, layer)
        share.count += count
        share.total_ns += total_ns
        if run is not None:
            share.add_run(run, total_ns)
        if event is not None:
            for detail, number in event.details.items():
                share.details[detail] = share.details.get(detail, 0.0) + number
        return share

    def longest_first(self) -> tuple[Share, ...]:
        """All of them."""
        return tuple(sorted(self._shares.values(), key=lambda share: -share.total_ns))


@dataclass(frozen=True, eq=False, slots=True)
class Summary:
    """Summary of a profile: all of the time, divided.

    ``wall_ns`` is the sum of ``layers``, ``overhead`` and ``waiting``, to the nanosecond; so it is
    with ``operations`` in the place of ``layers``; and ``load_ns`` is the sum of ``load``. Each is
    in order of its time, the longest first.
    """

    num_executions: int
    wall_ns: int
    """Time from the beginning of each execution to its end, waits in queues included; all
    executions added up.
    """
    elapsed_ns: int
    """Time in which at least one execution was under way: less than `wall_ns` where executions run
    side by side.
    """
    layers: tuple[Share, ...]
    """The model's layers, those within control flow and those that armpy has added included, by
    operation, name and backend.
    """
    operations: tuple[Share, ...]
    """The time of `layers` by kind of operation and backend."""
    overhead: tuple[Share, ...]
    """Time outside layers: armpy around layers, a backend around compiled layers, preparations
    during executions.
    """
    waiting: tuple[Share, ...]
    """Waits of executions, by their cause."""
    beside: tuple[Share, ...]
    """Measurements of backends in other threads than those of executions, or without a thread. They
    are not a part of the wall time.
    """
    load: tuple[Share, ...]
    """Phases of loading and of preparing for other shapes, outside executions."""
    load_ns: int
    """Time of all of loading."""
    num_dropped: int = 0
    """Events that were not kept; the time of these is their surroundings'."""
    run_ns: tuple[int, ...] = ()
    """Time from beginning to end of each execution, waits in queues left out; empty in profiles of
    earlier versions.
    """

    @property
    def run_us(self) -> Quartiles:
        """Quartiles of one execution; the mean in profiles of earlier versions."""
        if not self.run_ns:
            mean_us = self.wall_ns / 1000 / max(self.num_executions, 1)
            return Quartiles(mean_us, mean_us, mean_us)
        return quartiles_of([ns / 1000 for ns in self.run_ns])

    def to_rows(self) -> list[dict[str, object]]:
        """The time of executions as one plain dict per part, for pandas and other tables.

        Returns
        -------
        list of dict
            Layers, overhead and waiting, each the longest first: ``kind`` (``layer``, ``overhead``
            or ``waiting``), ``name``, ``layer``, ``operation``, ``backend``, ``count``,
            ``total_us`` of all executions, ``share`` of their time (all rows make 1), quartiles of
            one execution (``low_us``, ``median_us``, ``high_us``), and the sums that backends
            state, such as ``operations`` and ``bytes``, where they do.

        Examples
        --------
        >>> import pandas                                                   # doctest: +SKIP
        >>> pandas.DataFrame(model.profiler.summary().to_rows())            # doctest: +SKIP
        """
        kinds = (("layer", self.layers), ("overhead", self.overhead), ("waiting", self.waiting))
        rows: list[dict[str, object]] = []
        for kind, shares in kinds:
            for share in shares:
                low_us, median_us, high_us = share.quartiles_us(self.num_executions)
                known: dict[str, object] = {
                    "kind": kind,
                    "name": share.name,
                    "layer": share.layer,
                    "operation": share.operation,
                    "backend": share.backend,
                    "count": share.count,
                    "total_us": share.total_us,
                    "share": share.total_ns / (self.wall_ns or 1),
                    "low_us": low_us,
                    "median_us": median_us,
                    "high_us": high_us,
                }
                rows.append({**share.details, **known})
        return rows

    def __str__(self) -> str:
        lines = [
            f"{self.num_executions} executions, {self.wall_ns / 1e6:.3f} ms together"
            f" ({self.elapsed_ns / 1e6:.3f} ms elapsed)"
        ]
        parts = (
            ("operations", self.operations, self.wall_ns),
            ("overhead", self.overhead, self.wall_ns),
            ("waiting", self.waiting, self.wall_ns),
        )
        lines += _table(parts)
        if self.wall_ns:
            lines.append(f"  {1:7.2%} {self.wall_ns / 1000:12.1f} us  all of these")
        names = short_names(share.layer for share in self.layers[:_SHOWN])
        shown = [
            replace(s, name=f"{s.operation} '{names[s.layer]}'") if s.layer else s
            for s in self.layers[:_SHOWN]
        ]
        further = (
            (f"layers, {len(shown)} of {len(self.layers)}", shown, self.wall_ns),
            (f"loading, {self.load_ns / 1e6:.3f} ms", self.load, self.load_ns),
        )
        return "\n".join([*lines, *_table(further)])


def _table(parts: Iterable[tuple[str, Sequence[Share], int]]) -> list[str]:
    """Lines for parts of the time: a title each, shares, and their base."""
    lines = []
    for title, shares, whole_ns in parts:
        lines += [f"{title}:"] if shares else []
        lines += [
            f"  {share.total_ns / (whole_ns or 1):7.2%} {share.total_us:12.1f} us  "
            f"{share.name}" + (f" ({share.backend})" if share.backend else "")
            for share in shares
        ]
    return lines


def summarize(
    # `events` and `load_events`: as a `Profiler` has them.
    events: Sequence[ProfilingEvent],
    load_events: Sequence[ProfilingEvent],
    num_dropped: int = 0,
) -> Summary:
    """Say where all of the time went."""
    collected = _TimeTotals()
    queued = [event for event in events if event.kind is EventKind.QUEUED]
    roots = nested([*(e for e in events if e.kind is not EventKind.QUEUED), *load_events])
    executions: list[EventNode] = []
    for root in roots:
        if root.event.kind is EventKind.EXECUTION:
            collected.add_execution(root, len(executions))
            executions.append(root)
        elif root.event.kind is EventKind.LOAD:
            for node in root.walk():
                collected.load.add(node.event.name, node.event.backend, node.own_ns)
        else:  # in no execution's thread
            event = root.event
            collected.beside.add(event.name, event.backend, root.duration_ns, event=event)
    queued_ns = [(round(1000 * e.start_us), round(1000 * e.end_us)) for e in queued]
    for run, (event, (start_ns, end_ns)) in enumerate(zip(queued, queued_ns, strict=True)):
        collected.waiting.add(event.name, event.backend, end_ns - start_ns, run=run)
    intervals = [*((e.start_ns, e.end_ns) for e in executions), *queued_ns]
    layers = collected.layers.longest_first()
    operations = Shares()
    for share in layers:
        kind = share.operation
        whole = operations.add(kind, share.backend, share.total_ns, kind, count=share.count)
        for run, time_ns in enumerate(share.run_ns):
            whole.add_run(run, time_ns)
    return Summary(
        len(executions),
        sum(end_ns - start_ns for start_ns, end_ns in intervals),
        _union_ns(intervals),
        layers,
        operations.longest_first(),
        collected.overhead.longest_first(),
        collected.waiting.longest_first(),
        collected.beside.longest_first(),
        collected.load.longest_first(),
        sum(root.duration_ns for root in roots if root.event.kind is EventKind.LOAD),
        num_dropped,
        tuple(root.duration_ns for root in executions),
    )


class _TimeTotals:
    """Time of executions and of loading by its use."""

    def __init__(self) -> None:
        self.layers, self.overhead, self.waiting = Shares(), Shares(), Shares()
        self.beside, self.load = Shares(), Shares()

    def add_execution(self, root: EventNode, run: int) -> None:
        """Add the own time of an execution and of all within it; `run` is its number."""
        for node in root.walk():
            event = node.event
            if event.kind is EventKind.EXECUTION:
                self.overhead.add(BETWEEN, "", node.own_ns, run=run)
            elif event.kind is EventKind.WAITING:
                self.waiting.add(event.name, event.backend, node.own_ns, run=run)
            elif event.kind is EventKind.LOAD:
                name = f"preparing: {event.name}"
                self.overhead.add(name, event.backend, node.own_ns, run=run)
            elif event.kind is EventKind.LAYER and _is_compiled(node):
                self.overhead.add(AROUND, event.backend, node.own_ns, run=run)
            else:
                self._add_layer(node, run)

    def _add_layer(self, node: EventNode, run: int) -> None:
        """Add the own time of a layer, or of a part of one."""
        owner = _owner(node)
        event = owner.event
        if not event.layer:
            name, operation, layer = event.name, event.operation or event.name, ""
        else:
            layer = _path(owner)
            name, operation = f"{event.operation} '{layer}'", event.operation
        self.layers.add(name, event.backend, node.own_ns, operation, layer, node.event, run=run)


def _is_compiled(node: EventNode) -> bool:
    """Return whether a layer's backend names the model's layers that it computes in it."""
    return any(c.event.kind is EventKind.COMMAND and c.event.layer for c in node.children)


def _owner(node: EventNode) -> EventNode:
    """Return the owner of a node's time: itself, or the layer that it is a nameless part of."""
    if node.event.layer:
        return node
    around = node.parent
    while around is not None and around.event.kind in (EventKind.LAYER, EventKind.COMMAND):
        if around.event.layer:
            return around
        around = around.parent
    return node


def _path(node: EventNode) -> str:
    """Join the names of the enclosing control flow and of the layer: ``loop/body/sum``."""
    names = [node.event.layer]
    graph, around = node.event.graph, node.parent
    while around is not None:
        event = around.event
        if event.kind is EventKind.LAYER:
            if not _is_compiled(around):  # it runs graphs
                names += [graph, event.layer] if graph else [event.layer]
            graph = event.graph
        around = around.parent
    return "/".join(reversed(names))


def _union_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Return how long at least one of some intervals lasts."""
    total_ns = covered_ns = 0
    for start_ns, end_ns in sorted(intervals):
        begin_ns = max(start_ns, covered_ns) if total_ns else start_ns
        total_ns += max(end_ns - begin_ns, 0)
        covered_ns = max(end_ns, covered_ns) if total_ns else end_ns
    return total_ns
