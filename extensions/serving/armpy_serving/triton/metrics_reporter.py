"""Metrics of an instance, handed to the server from time to time."""

from __future__ import annotations

import threading
from typing import Any

import triton_python_backend_utils as pb_utils

from armpy_serving.metrics import KernelCounter, Metric, ModelMetrics, process_metrics

INTERVAL_S = 2.0
"""Time between two reports: each value is a message to the server, too much for every request."""


class MetricsReporter:
    """Adds changes to the server's own metrics, on a thread of its own.

    Parameters
    ----------
    metrics : ModelMetrics
        Metrics of the instance; those of all instances are added up by the server.
    instance : str
        Name of the instance, which gauges are labelled with.

    Notes
    -----
    A histogram goes over as counters, of the names and labels that Prometheus has for one: the
    server takes single observations alone.
    """

    def __init__(self, metrics: ModelMetrics, instance: str) -> None:
        self._metrics = metrics
        self._instance = instance
        self._kernels = KernelCounter()
        self._families: dict[str, Any] = {}  # Any: of the server's module
        self._values: dict[tuple[object, ...], tuple[Any, float]] = {}
        self._gauges: set[tuple[object, ...]] = set()
        self._current: set[tuple[object, ...]] = set()  # of the latest report
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._report_on, name="armpy-metrics", daemon=True)

    def start(self) -> None:
        """Begin to report."""
        self._kernels.__enter__()
        self._thread.start()

    def stop(self) -> None:
        """Report no more."""
        self._end.set()
        self._thread.join()
        self._kernels.__exit__(None, None, None)

    def _report_on(self) -> None:
        """Report until the end."""
        while not self._end.wait(INTERVAL_S):
            try:
                self.report()
            except Exception as error:  # noqa: BLE001 - the server's; models go on without metrics
                pb_utils.Logger.log_warn(f"metrics of {self._instance} end here: {error}")
                return

    def report(self) -> None:
        """Hand over the changes since the last time."""
        self._current.clear()
        for metric in (*self._metrics.metrics(), *process_metrics(self._kernels)):
            if metric.kind == "gauge":
                self._set(metric.name, metric, {"instance": self._instance}, metric.value)
            elif metric.kind == "counter":
                self._set(metric.name, metric, {}, metric.value)
            elif metric.buckets[-1][1]:
                self._set(f"{metric.name}_sum", metric, {}, metric.value)
                self._set(f"{metric.name}_count", metric, {}, metric.buckets[-1][1])
                for bound, count in metric.buckets:
                    le = "+Inf" if bound == float("inf") else f"{bound:g}"
                    self._set(f"{metric.name}_bucket", metric, {"le": le}, count)
        # The server keeps values for ever: a backend that runs nothing any more has to be 0.
        for key in self._gauges - self._current:
            self._values[key][0].set(0.0)
            self._values[key] = (self._values[key][0], 0.0)

    def _set(self, name: str, metric: Metric, labels: dict[str, str], value: float) -> None:
        """Update one of the server's values."""
        all_labels = metric.labels | labels
        key = (name, *all_labels.items())
        if key not in self._values:
            self._values[key] = (self._family(name, metric).Metric(labels=all_labels), 0.0)
        self._current.add(key)
        if metric.kind == "gauge":
            self._gauges.add(key)
        reported, before = self._values[key]
        if value != before:
            if metric.kind == "gauge":
                reported.set(value)
            else:
                reported.increment(value - before)
            self._values[key] = (reported, float(value))

    def _family(self, name: str, metric: Metric) -> Any:  # Any: of the server's module
        """The family of a name, made once."""
        if name not in self._families:
            kinds = pb_utils.MetricFamily
            kind = kinds.GAUGE if metric.kind == "gauge" else kinds.COUNTER
            family = kinds(name=name, description=metric.description, kind=kind)
            self._families[name] = family
        return self._families[name]
