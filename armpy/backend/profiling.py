"""Counters and measurements that a backend adds to the profile of one network."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod

from armpy.backend.context import Measurement
from armpy.core.dataclass import dataclass


class CounterKind(enum.Enum):
    """Kind of a counter's value.

    References
    ----------
    Arm NN's counter classes.
    """

    TOTAL = "total"
    """A sum of all that was added."""
    GAUGE = "gauge"
    """The value that was set last."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Something that a backend counts."""

    name: str  # for people, such as ``bytes uploaded``; unique in its backend
    unit: str = ""  # such as ``B``, ``us`` or, for mere numbers, an empty text
    kind: CounterKind = CounterKind.TOTAL
    description: str = ""  # one sentence


class IBackendProfiling(ABC):
    """The profile of one network, as a backend sees it; several threads may add to it.

    Notes
    -----
    The core implements it. Its errors are the backend's own where these pass them on:
    a workload that adds to a counter that was never declared has failed.
    """

    @abstractmethod
    def declare_counter(self, counter: Counter) -> None:
        """Announce a counter, which is 0 until something is added.

        Raises
        ------
        InvalidArgumentError
            If the backend has announced another counter of that name; the same one again is fine.
        """

    @abstractmethod
    def add_to_counter(self, name: str, value: float) -> None:
        """Add to a counter of kind TOTAL, or set one of kind GAUGE.

        Raises
        ------
        InvalidArgumentError
            If no such counter was declared, or the value is not a finite number.
        """

    @abstractmethod
    def add_event(self, event: Measurement) -> None:
        """Add something that took time.

        Where that is much in every execution, it is better kept until
        `IBackendProfilingContext.take_events` asks for it.

        Raises
        ------
        InvalidArgumentError
            If the times are not numbers.
        """
