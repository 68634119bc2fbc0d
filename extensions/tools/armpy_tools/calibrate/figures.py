"""Figures of devices against the reference, from measurements of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.types import DataType
from armpy_tools.devices.records import Sample

Samples = Mapping[str, Sample]
"""By the workload's name, ``kind/DATA_TYPE/size``, with one of these words ahead, or none."""

SCALAR, RELAXED, RELAXED_SCALAR = "scalar/", "relaxed/", "relaxed scalar/"
_AHEAD = (SCALAR, RELAXED, RELAXED_SCALAR)


def figures_from(samples: Samples, reference: Samples) -> DeviceFigures:
    """Divide a backend's times and powers by the reference's, workload by workload.

    Parameters
    ----------
    samples, reference : mapping of str to Sample
        What one of them lacks does not count.

    Returns
    -------
    DeviceFigures
        Geometric means by data type, so that each workload counts as much as any other. Relaxed
        ones are set against the exact ones of the reference.
    """
    plain = {name: sample for name, sample in samples.items() if not name.startswith(_AHEAD)}
    of_scalars = _without(reference, SCALAR)
    control = {kind: _named(plain, f"{kind}/") for kind in ("If", "While")}
    layers = {
        name: sample for name, sample in plain.items() if not name.startswith(("If/", "While/"))
    }
    return DeviceFigures(
        _by_type(layers, reference),
        _by_type(_without(samples, SCALAR), of_scalars),
        relaxed_tensor=_ratio(_without(samples, RELAXED), reference),
        relaxed_scalar=_ratio(_without(samples, RELAXED_SCALAR), of_scalars),
        if_=_ratio(control["If"], reference),
        while_=_ratio(control["While"], reference),
    )


def _without(samples: Samples, prefix: str) -> Samples:
    return {
        name.removeprefix(prefix): sample
        for name, sample in samples.items()
        if name.startswith(prefix)
    }


def _named(samples: Samples, prefix: str) -> Samples:
    """The samples with a prefix, as they are."""
    return {name: sample for name, sample in samples.items() if name.startswith(prefix)}


def _by_type(samples: Samples, reference: Samples) -> dict[DataType, PerformanceFigures]:
    """The figures of each data type that both have samples of."""
    groups: dict[DataType, dict[str, Sample]] = {}
    for name, sample in samples.items():
        groups.setdefault(DataType[name.split("/")[1]], {})[name] = sample
    ratios = {data_type: _ratio(group, reference) for data_type, group in groups.items()}
    return {data_type: pair for data_type, pair in ratios.items() if pair is not None}


def _ratio(samples: Samples, reference: Samples) -> PerformanceFigures | None:
    """Time, and power times time, against the reference's; None if there is nothing in common."""
    pairs = [(sample, reference[name]) for name, sample in samples.items() if name in reference]
    if not pairs:
        return None
    return PerformanceFigures(
        _mean(ours.seconds / theirs.seconds for ours, theirs in pairs),
        _mean(
            ours.seconds * ours.power / (theirs.seconds * theirs.power) for ours, theirs in pairs
        ),
    )


def _mean(ratios: Iterable[float]) -> float:
    """Geometric mean."""
    logarithms = [log(ratio) for ratio in ratios]
    return exp(sum(logarithms) / len(logarithms))
