"""Rates of a cost model, fitted to measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from armpy.inspect import Work, family_of, work_of
from armpy_tools.calibrate.workloads import CalibrationWorkload
from armpy_tools.devices.costs import Rate
from armpy_tools.devices.records import Sample

_SHORTEST_S = 1e-8
"""Least rest of a time after subtracting the part's own."""

_MUCH = 3.0
"""Sizes used to fit the size-dependent part of the time."""

Measured = Sequence[tuple[Work, Sample]]


def workload_work(workload: CalibrationWorkload) -> Work:
    """The work of a workload's layer."""
    layer = workload.graph.layers[0]
    return work_of(layer.operation, layer.input_infos, layer.output_infos)


def fit_rates(samples: Mapping[CalibrationWorkload, Sample], part_s: float) -> dict[str, Rate]:
    """The rates of kinds, operations, families and of everything.

    Parameters
    ----------
    samples : mapping of CalibrationWorkload to Sample
        Samples of whole executions.
    part_s : float
        Seconds that every part costs besides its layers.

    Returns
    -------
    dict of str to Rate
        With the keys of `armpy_tools.devices.costs.BackendCosts.rates`.

    Notes
    -----
    A measurement of a single size does not extend to others. Its rate is the next wider one, of the
    operation, its family or everything, so many times as its own time is of that.
    """
    groups: dict[str, list[tuple[Work, Sample]]] = {}
    wider: dict[str, str] = {}
    for workload, sample in samples.items():
        seconds = max(sample.seconds - part_s, _SHORTEST_S)
        measured = workload_work(workload), Sample(seconds, sample.power)
        name = workload.kind.partition(":")[0]
        names = dict.fromkeys((workload.kind, name, family_of(name)))
        keys = [*(f"{key}/{workload.types}" for key in names), "*"]
        wider.update(pairwise(keys))
        for key in keys:
            groups.setdefault(key, []).append(measured)
    rates: dict[str, Rate] = {}
    for key in groups:
        _fit_group(key, groups, wider, rates)
    return rates


def _fit_group(
    key: str,
    groups: Mapping[str, Measured],
    wider: Mapping[str, str],
    rates: dict[str, Rate],
) -> Rate:
    """The rate of one group, by its own times or those of the next wider group."""
    if key not in rates:
        measured = groups[key]
        if key not in wider or _has_sizes(measured):
            rates[key] = fit_rate(measured)
        else:
            base = _fit_group(wider[key], groups, wider, rates)
            ratios = [sample.seconds / max(base.seconds(work), 1e-12) for work, sample in measured]
            power = float(np.median([sample.power for _, sample in measured]))
            rates[key] = replace(base.scaled(float(np.median(ratios))), power=power)
    return rates[key]


def _has_sizes(measured: Measured) -> bool:
    """Return whether some of the works are much larger than others."""
    sizes = [work.flops + work.size_bytes for work, _ in measured]
    return max(sizes) > _MUCH * min(sizes)


def fit_rate(measured: Measured) -> Rate:
    """The rate with the smallest relative errors; none of its numbers is below 0.

    Notes
    -----
    Of all choices of the overhead, operations and bytes, the best that a least-squares solution
    without negative numbers has; of those that are equally good, the one with fewest numbers.
    """
    times = np.array([sample.seconds for _, sample in measured])
    units = np.array([(1.0, work.flops, work.size_bytes) for work, _ in measured])
    relative = units / times[:, None]
    best: tuple[float, tuple[float, ...]] = (float("inf"), (float(np.median(times)), 0.0, 0.0))
    for count in range(1, min(3, len(measured)) + 1):
        for columns in combinations(range(3), count):
            solution = _solved(relative, columns)
            if solution is not None and solution[0] < best[0] - 1e-9:
                best = solution
    power = float(np.median([sample.power for _, sample in measured]))
    overhead_s, flop_s, byte_s = best[1]
    return Rate(overhead_s, flop_s, byte_s, power)


def _solved(
    relative: np.ndarray[tuple[int, ...], np.dtype[np.float64]], columns: tuple[int, ...]
) -> tuple[float, tuple[float, ...]] | None:
    """The error and numbers of a solution with some of the numbers; None if one is below 0."""
    chosen = relative[:, columns]
    scale = chosen.max(axis=0)
    if not (scale > 0).all():
        return None
    solution, *_ = np.linalg.lstsq(chosen / scale, np.ones(len(relative)), rcond=None)
    if (solution < 0).any():
        return None
    error = float(((chosen / scale) @ solution - 1) @ ((chosen / scale) @ solution - 1))
    numbers = [0.0, 0.0, 0.0]
    for column, number in zip(columns, solution / scale, strict=True):
        numbers[column] = float(number)
    return error, tuple(numbers)
