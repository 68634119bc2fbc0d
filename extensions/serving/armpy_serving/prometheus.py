"""Metrics of served models as ``prometheus_client`` has them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)

from armpy_serving.metrics import KernelCounter, Metric, all_metrics


class PrometheusCollector:
    """Hands all models' metrics, and the process's, to a registry.

    Examples
    --------
    >>> from prometheus_client import REGISTRY                # doctest: +SKIP
    >>> REGISTRY.register(PrometheusCollector())              # doctest: +SKIP
    """

    def __init__(self, kernels: KernelCounter | None = None) -> None:
        self._kernels = kernels

    def collect(self) -> Iterator[Family]:
        """Families of metrics, made when a page of them is requested."""
        families: dict[str, Family] = {}
        for metric in all_metrics(self._kernels):
            if metric.name not in families:
                families[metric.name] = _family(metric)
            _add(families[metric.name], metric)
        yield from families.values()


def _family(metric: Metric) -> Family:
    """The family that a metric is of, without values."""
    kind = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }[metric.kind]
    family: Family = kind(metric.name, metric.description, labels=[*metric.labels])
    return family


def _add(family: Family, metric: Metric) -> None:
    """Add a metric's value to its family."""
    values = [*metric.labels.values()]
    if isinstance(family, HistogramMetricFamily):
        bounds = [("+Inf" if b == float("inf") else f"{b:g}", n) for b, n in metric.buckets]
        family.add_metric(values, bounds, metric.value)
    elif isinstance(family, (CounterMetricFamily, GaugeMetricFamily)):
        family.add_metric(values, metric.value)
