"""Nesting of events: which lies within which, so that no time counts twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy.profiling.events import EventKind, ProfilingEvent

_RANKS = {kind: rank for rank, kind in enumerate(EventKind)}
"""Order of events that begin and end at the same moment: outer ones have the lower number."""


@dataclass(eq=False, slots=True)
class EventNode:
    """An event with those within it."""

    event: ProfilingEvent
    start_ns: int
    end_ns: int
    """`start_ns` and `end_ns`: within those of the parent, and after those of earlier children."""
    parent: EventNode | None = None
    children: list[EventNode] = field(default_factory=list)
    """Events within this one, in order of time."""

    @property
    def duration_ns(self) -> int:
        """Return how long it took."""
        return self.end_ns - self.start_ns

    @property
    def own_ns(self) -> int:
        """Return how long it took without what lies within."""
        return self.duration_ns - sum(child.duration_ns for child in self.children)

    @property
    def is_core(self) -> bool:
        """Return whether the core has measured it, which backends' events cannot lie across."""
        return self.event.kind is not EventKind.COMMAND

    def walk(self) -> Iterator[EventNode]:
        """The event and all within, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


def nested(events: Iterable[ProfilingEvent]) -> list[EventNode]:
    """The outermost events of each thread, with all others within them.

    Durations are whole nanoseconds and children lie within their parents, one after the other, so
    that the own times of an event and of all within it add up to its duration exactly. Where
    events lie across each other, the later one ends with the earlier one; one of a backend
    ends where one of the core begins.
    """
    by_thread: dict[int, list[EventNode]] = {}
    for event in events:
        start_ns = round(1000 * event.start_us)
        node = EventNode(event, start_ns, max(start_ns, round(1000 * event.end_us)))
        by_thread.setdefault(event.thread, []).append(node)
    return [root for nodes in by_thread.values() for root in _nested(nodes)]


def _nested(nodes: list[EventNode]) -> Iterator[EventNode]:
    nodes.sort(key=lambda node: (node.start_ns, -node.end_ns, _RANKS[node.event.kind]))
    around: list[EventNode] = []
    for node in nodes:
        while around and _is_over(around[-1], node):
            around.pop()
        if not around:
            yield node
        else:
            node.parent = around[-1]
            node.end_ns = min(node.end_ns, node.parent.end_ns)
            node.parent.children.append(node)
        around.append(node)


def _is_over(earlier: EventNode, node: EventNode) -> bool:
    """Return whether an event ends before another begins; a backend's event is cut off there."""
    if node.is_core and not earlier.is_core:
        earlier.end_ns = min(earlier.end_ns, node.start_ns)
        return True
    # One that takes no time at the very end of another one belongs to what follows.
    return earlier.end_ns <= node.start_ns
