"""Parts of a profile's time."""

from __future__ import annotations

from dataclasses import dataclass, field

from armpy.profiling.events import ProfilingEvent


@dataclass(slots=True)
class Share:
    """A part of the time."""

    name: str
    """For people: a layer as ``Convolution2d 'conv_3'``, an operation, what was waited for."""
    backend: str = ""
    """Empty for armpy itself."""
    operation: str = ""
    layer: str = ""
    """`operation` and `layer`: of a layer; empty for what is none."""
    count: int = 0
    """Number of events."""
    total_ns: int = 0
    """All executions together, in nanoseconds."""
    details: dict[str, float] = field(default_factory=dict)
    """Sums of what backends say about it; see `armpy.backend.Measurement`."""

    @property
    def total_us(self) -> float:
        """All executions together, in microseconds."""
        return self.total_ns / 1000


class Shares:
    """Time by what it went into."""

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
    ) -> None:
        """Add time, and what a backend says about it."""
        key = (name, backend)
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = Share(name, backend, operation, layer)
        share.count += count
        share.total_ns += total_ns
        if event is not None:
            for detail, number in event.details.items():
                share.details[detail] = share.details.get(detail, 0.0) + number

    def longest_first(self) -> tuple[Share, ...]:
        """All of them."""
        return tuple(sorted(self._shares.values(), key=lambda share: -share.total_ns))
