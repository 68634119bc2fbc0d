"""Report of an accuracy run over models."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, field

from armpy.core.dataclass import dataclass
from armpy_tools.comparison.errors import ErrorStats
from armpy_tools.measure.latency import Latency


class Status(enum.StrEnum):
    """Status of one model in an accuracy run.

    Notes
    -----
    OK: the backend ran layers of it and is as exact as CpuRef and the peer. INACCURATE: it is
    further from the real numbers than the closer one of them times the tolerance. UNSUPPORTED: it
    runs no layer of it. FAILED: an error. CRASHED: the process ended, or did not come to an end.
    """

    OK = "OK"
    INACCURATE = "INACCURATE"
    UNSUPPORTED = "UNSUPPORTED"
    FAILED = "FAILED"
    CRASHED = "CRASHED"


@dataclass(frozen=True, slots=True)
class EngineReport:
    """One engine on one model."""

    name: str
    version: str = ""
    errors: ErrorStats | None = None  # against the float reference; None if there is no answer
    relative_by_sample: tuple[float, ...] = ()  # relative error of each sample; empty as above
    latency: Latency | None = None  # None if it was not timed
    times_ms: tuple[float, ...] = ()  # of each execution, in order
    text: str = ""  # why something is missing
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores against expected results by measure; empty if there are none."""

    def to_document(self) -> dict[str, object]:
        """As plain dictionaries and lists."""
        latency = self.latency
        return {
            "name": self.name,
            "version": self.version,
            "errors": None if self.errors is None else asdict(self.errors),
            "relative_by_sample": list(self.relative_by_sample),
            "latency": latency
            and {
                "median": latency.median_ms,
                "mean": latency.mean_ms,
                "deviation": latency.deviation_ms,
                "best": latency.min_ms,
                "p90": latency.p90_ms,
                "times": list(self.times_ms),
            },
            "text": self.text,
            "scores": dict(self.scores),
        }


@dataclass(frozen=True, slots=True)
class ModelAccuracy:
    """One model."""

    model: str  # the file
    status: Status
    text: str = ""  # why
    reference: str = ""
    """The reference of the errors: real numbers, or CpuRef where there is no float twin."""
    # How many layers it has, and how many of them the backend runs.
    num_layers: int = 0
    num_taken: int = 0
    engines: tuple[EngineReport, ...] = ()  # the backend, CpuRef, and the peer
    num_samples: int = 0
    compared: str = ""
    """Peer of the comparison of errors; empty if there was none."""

    def to_document(self) -> dict[str, object]:
        """As plain dictionaries and lists."""
        engines = [engine.to_document() for engine in self.engines]
        return asdict(self) | {"status": self.status.value, "engines": engines}

    def engine(self, name: str) -> EngineReport | None:
        """The report of an engine; None if there is none."""
        return next((engine for engine in self.engines if engine.name == name), None)
