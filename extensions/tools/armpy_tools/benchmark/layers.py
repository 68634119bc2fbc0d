"""Time of each layer, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from armpy.profiling import Profiler, Share
from armpy_tools.benchmark.engines import ArmpySubjectModel, load_model
from armpy_tools.benchmark.results import LayerCost
from armpy_tools.benchmark.subjects import Subject
from armpy_tools.measure.limits import limit_of


def measure_layers(subject: Subject, seed: int, runs: int) -> list[LayerCost]:
    """Run a model with a profile.

    Parameters
    ----------
    subject : Subject
        On armpy.
    runs : int
        After one that does not count.

    Returns
    -------
    list of LayerCost
        The slowest first.
    """
    with load_model(subject, profiling=True) as model:
        loaded = ArmpySubjectModel(subject, model)
        loaded.fit_shapes()
        loaded.prepare_inputs(seed)
        call = loaded.caller()
        call()
        profiler = loaded.model.profiler
        assert profiler is not None  # it was asked for
        shares: list[Sequence[Share]] = []
        for _ in range(runs):
            profiler.clear()
            call()
            shares.append(_layers_of(profiler))
    return layer_costs(shares)


def _layers_of(profiler: Profiler) -> Sequence[Share]:
    """Layers of the execution that the profile has."""
    return profiler.summary().layers


def layer_costs(runs: Sequence[Sequence[Share]]) -> list[LayerCost]:
    """Return each layer's median time of some runs, and its limit.

    Parameters
    ----------
    runs : sequence of sequence of Share
        The layers of one execution each.
    """
    times: dict[tuple[str, str], list[float]] = {}
    last: dict[tuple[str, str], Share] = {}
    for shares in runs:
        for share in shares:
            key = (share.name, share.backend)
            times.setdefault(key, []).append(share.total_us)
            last[key] = share
    medians = {key: median(durations) for key, durations in times.items()}
    whole_us = sum(medians.values())
    costs = [
        _cost(last[key], us, us / whole_us if whole_us else 0.0) for key, us in medians.items()
    ]
    return sorted(costs, key=lambda cost: -cost.time_us)


def _cost(share: Share, time_us: float, part: float) -> LayerCost:
    """Return the known costs of a layer."""
    details = share.details
    compute_us, memory_us = details.get("compute_us", 0.0), details.get("memory_us", 0.0)
    return LayerCost(
        share.layer or share.name,
        share.operation,
        share.backend,
        time_us,
        part,
        details.get("operations", 0.0),
        details.get("bytes", 0.0),
        compute_us,
        memory_us,
        limit_of(time_us, compute_us, memory_us),
    )
