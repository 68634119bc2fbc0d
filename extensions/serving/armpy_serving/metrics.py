"""Metrics of served models, as plain numbers; `armpy_serving.prometheus` makes pages of them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import TracebackType
from typing import Self
from weakref import WeakSet

from armpy import Model
from armpy.backend.progress import Progress, watch_progress
from armpy.core.dataclass import dataclass
from armpy.core.resident_memory import resident_bytes
from armpy.errors import ArmpyError
from armpy_serving.health import ModelHealth, backend_failures, backend_use
from armpy_serving.status import status_of

SECONDS = (*(m * 10.0**e for e in range(-5, 1) for m in (1, 2.5, 5)), 10.0)
"""Upper bounds of the buckets of times: 10 us to 10 s."""

ROWS = tuple(2.0**n for n in range(11))
"""Upper bounds of the buckets of batches: 1 to 1024 rows."""

_ALL: WeakSet[ModelMetrics] = WeakSet()


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric as it is now."""

    name: str
    description: str
    kind: str
    value: float  # of a histogram, the sum of all that was observed
    labels: dict[str, str] = field(default_factory=dict)
    buckets: tuple[tuple[float, int], ...] = ()
    """Buckets of a histogram: upper bounds and how many were not above each; the last bound is
    infinity.
    """


class Histogram:
    """Histogram of observed values; not for several threads.

    Parameters
    ----------
    bounds : sequence of float
        Upper bounds of the buckets, ascending; all above them has one of its own.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def metric(self, name: str, description: str, labels: dict[str, str]) -> Metric:
        """All of it, as it is now."""
        seen, buckets = 0, []
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            seen += count
            buckets.append((bound, seen))
        return Metric(name, description, "histogram", self._sum, labels, tuple(buckets))


class ModelMetrics:
    """Counts the outcomes of a served model's requests, from several threads.

    Parameters
    ----------
    model, version : str
        Labels of all that is counted.
    """

    def __init__(self, model: str, version: str = "") -> None:
        # Both always: metrics of one name have labels of the same names.
        self._labels = {"model": model, "version": version}
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self.healths: Sequence[ModelHealth] = ()  # of each size that the model is loaded for
        self._running = self._loads = 0
        self._rows, self._queue, self._compute, self._load = (
            Histogram(bounds) for bounds in (ROWS, SECONDS, SECONDS, SECONDS)
        )
        _ALL.add(self)

    def began(self, number: int = 1) -> None:
        """Count requests that run from now on; a negative number, those that do not any more."""
        with self._lock:
            self._running += number

    def requested(self, outcome: str = "OK", number: int = 1) -> None:
        """Count requests that were answered: ``OK``, or the name of gRPC's code."""
        with self._lock:
            self._requests[outcome] += number

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count a request that cannot be read, by its error."""
        try:
            yield
        except ArmpyError as error:
            self.requested(status_of(error).grpc)
            raise

    def executed(self, rows: int, compute_s: float, queue_s: Sequence[float] = ()) -> None:
        """Count a batch, and how long its requests have waited for it, in seconds."""
        with self._lock:
            self._rows.observe(rows)
            self._compute.observe(compute_s)
            for waited_s in queue_s:
                self._queue.observe(waited_s)

    def loaded(self, duration_s: float) -> None:
        """Count a load of the model."""
        with self._lock:
            self._loads += 1
            self._load.observe(duration_s)

    def metrics(self) -> list[Metric]:
        """All of it, as it is now."""
        labels = self._labels
        health = self._health_metrics()
        with self._lock:
            requests = [
                Metric("armpy_requests", "Requests", "counter", n, labels | {"code": code})
                for code, n in sorted(self._requests.items())
            ]
            return [
                *requests,
                Metric("armpy_requests_running", "Under way", "gauge", self._running, labels),
                Metric("armpy_loads", "Loads of the model", "counter", self._loads, labels),
                self._load.metric("armpy_load_seconds", "Time to load the model", labels),
                self._rows.metric("armpy_batch_rows", "Rows of executed batches", labels),
                self._queue.metric("armpy_queue_seconds", "Waiting for a batch", labels),
                self._compute.metric("armpy_compute_seconds", "Executing a batch", labels),
                *health,
            ]

    def _health_metrics(self) -> list[Metric]:
        """Whether the model can answer, and the backends that run it; none before it is loaded."""
        if not self.healths:
            return []
        labels = self._labels
        is_ready = not any([health.problem(0.0) for health in self.healths])
        models = [health.model for health in self.healths]
        return [
            Metric("armpy_ready", "Can answer requests", "gauge", is_ready, labels),
            *_use_metrics(models[0], labels),
            *_failure_metrics(models, labels),
        ]


def _use_metrics(model: Model, labels: dict[str, str]) -> Iterator[Metric]:
    """Metrics of the backends that run a model's layers, and of the intended one."""
    use = backend_use(model)
    if use is None:
        return
    text = "Share of the layers that a backend runs"
    for entry in use.shares:
        backend = labels | {"backend": entry.backend}
        yield Metric("armpy_backend_share", text, "gauge", entry.share, backend)
    text = "Share of the layers that run elsewhere than on the intended backend"
    intended = labels | {"intended": use.intended}
    yield Metric("armpy_fallback_share", text, "gauge", use.fallback_share, intended)


def _failure_metrics(models: Sequence[Model], labels: dict[str, str]) -> Iterator[Metric]:
    """Metrics of isolated backends' processes."""
    for failures in backend_failures(models):
        backend = labels | {"backend": failures.backend}
        text = "Failed processes of a backend"
        yield Metric("armpy_backend_failures", text, "counter", failures.count, backend)
        text = "Time until a backend is started again"
        left_s = failures.quarantine_left_s
        yield Metric("armpy_backend_quarantine_seconds", text, "gauge", left_s, backend)


class KernelCounter:
    """Counts kernels that the process compiles while a ``with`` block runs."""

    def __init__(self) -> None:
        self.count = 0
        self._watch = watch_progress(self._hear)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def _hear(self, progress: Progress) -> None:
        # Each report but the first is of one kernel more.
        if progress.task == "compiling kernels" and progress.done:
            self.count += 1


def all_metrics(kernels: KernelCounter | None = None) -> list[Metric]:
    """Metrics of the process, and of every model that it serves."""
    models = [metric for served in tuple(_ALL) for metric in served.metrics()]
    return [*models, *process_metrics(kernels)]


def process_metrics(kernels: KernelCounter | None = None) -> list[Metric]:
    """Metrics of the process: its memory, and kernels that it has compiled."""
    metrics = [Metric("armpy_memory_bytes", "Resident memory", "gauge", resident_bytes()[0])]
    if kernels is not None:
        metrics.append(Metric("armpy_kernels_compiled", "Kernels", "counter", kernels.count))
    return metrics
