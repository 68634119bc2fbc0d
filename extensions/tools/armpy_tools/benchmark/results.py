"""Results of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from armpy_tools.benchmark.subjects import Plan, Subject
from armpy_tools.measure.latency import Latency
from armpy_tools.measure.ratio import CONFIDENCE, Ratio


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of a subject, in bytes.

    Parameters
    ----------
    peak_bytes : int
        By how much loading and running have raised the most memory that the process ever had; of
        the last process, as the first one may have compiled.
    weights_bytes, arena_bytes : int, optional
        Constants of the network, and working memory of one execution; None of a peer.
    """

    peak_bytes: int
    weights_bytes: int | None = None
    arena_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Time of a layer, and what limits it.

    Parameters
    ----------
    name, operation, backend : str
    time_us : float
        Of one run, in the median.
    share : float
        Of all layers.
    operations, size_bytes : float
        Arithmetic, and what it reads and writes; 0 if not known.
    compute_us, memory_us : float
        The least time that the machine needs for each; 0 if the backend does not tell.
    limit : {"compute", "memory", "overhead", "not known"}
        Which of the two is longer; overhead where the layer takes a multiple of both.
    """

    name: str
    operation: str
    backend: str
    time_us: float
    share: float
    operations: float
    size_bytes: float
    compute_us: float
    memory_us: float
    limit: str

    @property
    def reached(self) -> float:
        """What share of the time the machine needs at least: 1 is as fast as it can be."""
        return max(self.compute_us, self.memory_us) / self.time_us if self.time_us else 0.0


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """Results of a subject.

    Parameters
    ----------
    name : str
    subject : Subject
    items : int
        Of the batch of one run.
    placement : str
        Which backend took how many layers; the engine's version for a peer.
    load_ms, first_ms : tuple of float
        Loading, and the first run, in each process, in order.
    latency : Latency, optional
        Of warm runs; None if there were none.
    per_second : float
        Items, of all callers together, while they were running.
    processors : float
        Busy in a run, on average.
    memory : MemoryUse, optional
    ratio : Ratio, optional
        To the baseline; None for the baseline itself, and without runs.
    turns_ms : tuple of tuple of float
        Medians of turns, in order, in each process.
    layers : tuple of LayerCost
        The slowest first; empty unless asked for.
    notes : tuple of str
        What to know about these numbers.
    failure : str
        Why there are none; else empty.
    """

    name: str
    subject: Subject
    items: int = 1
    placement: str = ""
    load_ms: tuple[float, ...] = ()
    first_ms: tuple[float, ...] = ()
    latency: Latency | None = None
    per_second: float = 0.0
    processors: float = 0.0
    memory: MemoryUse | None = None
    ratio: Ratio | None = None
    turns_ms: tuple[tuple[float, ...], ...] = ()
    layers: tuple[LayerCost, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class MachineState:
    """The machine, and what else it did.

    Parameters
    ----------
    description : str
    processors : int
        That this process may use.
    load_before : float, optional
        Processes that ran or waited to run in the minute before.
    others : float, optional
        Processors that other processes kept busy during the runs, on average.
    """

    description: str
    processors: int
    load_before: float | None = None
    others: float | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """Results of a benchmark.

    Parameters
    ----------
    plan : Plan
    machine : MachineState
    subjects : tuple of SubjectResult
        In the order in which they were given.
    seconds : float
        What it took altogether.
    processes : int
        How often everything was measured to the end.
    notes : tuple of str
        What to know about the numbers of all.
    interrupted : bool
        Whether it was stopped before its end.
    """

    plan: Plan
    machine: MachineState
    subjects: tuple[SubjectResult, ...]
    seconds: float
    processes: int
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    def as_document(self) -> Mapping[str, object]:
        """As mappings, lists, numbers and texts."""
        return {**asdict(self), "confidence": CONFIDENCE}
