"""Contents of a profile, for those who write it down."""

from __future__ import annotations

from typing import Protocol

from armpy.profiling.counters import CounterSample, CounterValue
from armpy.profiling.details import LayerDetails
from armpy.profiling.events import ProfilingEvent


class ProfileRecord(Protocol):
    """Record of one loaded network, as `Profiler` has it."""

    num_dropped: int

    @property
    def events(self) -> tuple[ProfilingEvent, ...]:
        """What executions have told."""

    @property
    def load_events(self) -> tuple[ProfilingEvent, ...]:
        """Phases of optimising and preparing the network."""

    @property
    def layers(self) -> tuple[LayerDetails, ...]:
        """What the layers are."""

    @property
    def counters(self) -> tuple[CounterValue, ...]:
        """What backends have counted."""

    @property
    def counter_samples(self) -> tuple[CounterSample, ...]:
        """Every change of a counter."""
