"""Statistics: what a batcher has done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from armpy.core.dataclass import dataclass

_LATEST = 1000
"""Number of waits and executions that are remembered."""


@dataclass(frozen=True, slots=True)
class BatcherStatistics:
    """Counts of a batcher's work so far."""

    items: int  # answered, be it with an error of their batch
    direct: int  # of them, those that were run by themselves
    batches: int  # executions, those of single items included
    # Items that ended with an error of the model, missed their deadline, or found no room.
    failed: int
    expired: int
    refused: int
    padded_rows: int  # rows that only filled up batches
    waiting: int  # items that are waiting now
    mean_batch: float  # items per execution
    # How long the latest items waited for their batch to begin.
    wait_ms_median: float
    wait_ms_p99: float
    # How long the latest executions took.
    execution_ms_median: float
    execution_ms_p99: float
    sizes: tuple[int, ...]  # numbers of rows that are prepared
    problem: str  # why there can be no batches; empty if nothing stands against them


class BatchCounter:
    """Counts what a batcher does, from several threads.

    Attributes
    ----------
    items : int
        Answered so far.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self.items = self._direct = self._batches = self._padded_rows = 0
        self._counts = dict.fromkeys(("failed", "expired", "refused"), 0)
        self._waits_ms: deque[float] = deque(maxlen=_LATEST)
        self._executions_ms: deque[float] = deque(maxlen=_LATEST)

    def count(self, what: str, number: int = 1) -> None:
        """Count something."""
        with self._lock:
            self._counts[what] += number

    def began(self, waits_s: Sequence[float]) -> None:
        """Note how long items have waited."""
        with self._lock:
            self._waits_ms.extend([1e3 * wait for wait in waits_s])

    def ran_directly(self, duration_s: float) -> None:
        """Count an item that was run by itself."""
        with self._lock:
            self.items += 1
            self._direct += 1
            self._executions_ms.append(1e3 * duration_s)

    def executed(self, num_items: int, size: int, duration_s: float) -> None:
        """Count an execution of several rows."""
        with self._lock:
            self._batches += 1
            self.items += num_items
            self._padded_rows += size - num_items
            self._executions_ms.append(1e3 * duration_s)

    def statistics(self, waiting: int, sizes: tuple[int, ...], problem: str) -> BatcherStatistics:
        """All of it, as it is now."""
        with self._lock:
            waits, executions = sorted(self._waits_ms), sorted(self._executions_ms)
            counts = dict(self._counts)
            items, direct = self.items, self._direct
            batches, padded_rows = self._direct + self._batches, self._padded_rows
        return BatcherStatistics(
            **counts,
            items=items,
            direct=direct,
            batches=batches,
            padded_rows=padded_rows,
            waiting=waiting,
            mean_batch=items / max(1, batches),
            wait_ms_median=_quantile(waits, 0.5),
            wait_ms_p99=_quantile(waits, 0.99),
            execution_ms_median=_quantile(executions, 0.5),
            execution_ms_p99=_quantile(executions, 0.99),
            sizes=sizes,
            problem=problem,
        )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which a share of some ordered ones lies; 0 if there are none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
