"""Results of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from armpy.core.dataclass import dataclass
from armpy_tools.benchmark.subjects import Plan, Subject
from armpy_tools.measure.latency import Latency
from armpy_tools.measure.ratio import CONFIDENCE, Ratio


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of a subject, in bytes."""

    # By how much loading and running have raised the most memory that the process ever had; of the
    # last process, as the first one may have compiled.
    peak_bytes: int
    # Constants of the network, and working memory of one execution; None of a peer.
    weights_bytes: int | None = None
    arena_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Time of a layer, and what limits it."""

    name: str
    operation: str
    backend: str
    time_us: float  # of one run, in the median
    share: float  # of all layers
    operations: float  # arithmetic, and bytes read and written; 0 if not known
    size_bytes: float
    # The least time that the machine needs for each; 0 if the backend does not know.
    compute_us: float
    memory_us: float
    limit: str  # which of the two is longer; overhead where the layer takes a multiple of both

    @property
    def reached(self) -> float:
        """Share of the time that the machine needs at least: 1 is as fast as it can be."""
        return max(self.compute_us, self.memory_us) / self.time_us if self.time_us else 0.0


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """Results of a subject."""

    name: str
    subject: Subject
    items: int = 1  # of the batch of one run
    placement: str = ""  # which backend took how many layers; the engine's version for a peer
    load_ms: tuple[float, ...] = ()  # loading, and the first run, in each process, in order
    first_ms: tuple[float, ...] = ()
    latency: Latency | None = None  # of warm runs; None if there were none
    per_second: float = 0.0  # items, of all callers together, while they were running
    processors: float = 0.0  # busy in a run, on average
    memory: MemoryUse | None = None
    ratio: Ratio | None = None  # to the baseline; None for the baseline itself, and without runs
    turns_ms: tuple[tuple[float, ...], ...] = ()  # medians of turns, in order, in each process
    layers: tuple[LayerCost, ...] = ()  # the slowest first; empty unless asked for
    notes: tuple[str, ...] = ()  # what to know about these numbers
    failure: str = ""  # why there are none; else empty


@dataclass(frozen=True, slots=True)
class MachineState:
    """The machine, and what else it did."""

    description: str
    processors: int  # that this process may use
    load_before: float | None = None  # processes that ran or waited to run in the minute before
    # Processors that other processes kept busy during the runs, on average.
    others: float | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """Results of a benchmark."""

    plan: Plan
    machine: MachineState
    subjects: tuple[SubjectResult, ...]  # in the order in which they were given
    seconds: float  # in total
    processes: int  # how often everything was measured to the end
    notes: tuple[str, ...] = ()  # what to know about the numbers of all
    interrupted: bool = False  # whether it was stopped before its end

    def as_document(self) -> Mapping[str, object]:
        """As mappings, lists, numbers and texts."""
        return {**asdict(self), "confidence": CONFIDENCE}
