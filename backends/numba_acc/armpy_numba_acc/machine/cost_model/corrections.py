"""Corrections of the cost model: what measurements of networks say of its figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Corrections: TypeAlias = Mapping[str, float]
"""Measured time over estimated time, relative to each other, by kind of work."""

_LEAST_NETWORKS = 2
"""That have to teach the same: one may be an exception."""

_LEAST_ERROR = 0.03
_MOST_FACTOR = 1.5
_DIGITS = 2


def network_corrections(
    decisions: Sequence[Sequence[tuple[str, float, float]]],
) -> dict[str, float]:
    """Return the corrections that follow from the decisions of one network.

    Only the comparison of ways counts: the rest of the measured time is the same for all.

    Parameters
    ----------
    decisions
        Of each decision the ways that were tried: what can be corrected, how long it takes as the
        figures say, and how long it took.
    """
    errors: dict[str, list[float]] = {}
    for ways in decisions:
        logs = [math.log(measured / modelled) for _, modelled, measured in ways]
        middle = statistics.median(logs)
        for (way, _, _), log in zip(ways, logs, strict=True):
            errors.setdefault(way, []).append(log - middle)
    return {way: math.exp(statistics.fmean(way_errors)) for way, way_errors in errors.items()}


def agreed_corrections(networks: Sequence[Corrections]) -> dict[str, float]:
    """Return the corrections that several networks agree on.

    Returns
    -------
    dict of str to float
        For `armpy_numba_acc.machine.cost_model.model.MachineModel.corrected`.
    """
    agreed = {}
    for way in sorted({way for corrections in networks for way in corrections}):
        errors = [math.log(corrections[way]) for corrections in networks if way in corrections]
        if len(errors) < _LEAST_NETWORKS or min(map(abs, errors)) < _LEAST_ERROR:
            continue
        if min(errors) > 0 or max(errors) < 0:
            factor = math.exp(statistics.fmean(errors))
            agreed[way] = round(min(max(factor, 1 / _MOST_FACTOR), _MOST_FACTOR), _DIGITS)
    return agreed
