"""Limits of a layer: arithmetic, memory, or overhead.

References
----------
Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009.
"""

from __future__ import annotations

from collections.abc import Mapping

FAR = 1 / 3
"""A layer that comes no nearer to either limit than this is held up by something else."""

UNKNOWN = "not known"

_WORDS = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
}


def limit_of(time_us: float, compute_us: float, memory_us: float) -> str:
    """Return the limit of a layer.

    Parameters
    ----------
    time_us : float
        That it takes.
    compute_us, memory_us : float
        The least that the machine needs for each; 0 if not known.
    """
    least_us = max(compute_us, memory_us)
    if not least_us:
        return UNKNOWN
    if least_us < FAR * time_us:
        return "overhead"
    return "compute" if compute_us >= memory_us else "memory"


def main_limit(times: Mapping[str, float]) -> str:
    """Describe the limit of most of the time in layers, in words.

    Parameters
    ----------
    times : mapping of str to float
        Time by limit, as `limit_of` names them.
    """
    whole = sum(times.values())
    limit = max(times, key=times.__getitem__, default=UNKNOWN)
    if limit == UNKNOWN or not whole:
        return "what limits it is not known: the backend does not state its work"
    if limit == "overhead":
        return "neither arithmetic nor memory bandwidth limits the layers"
    return f"limited by {_WORDS[limit]} in {100 * times[limit] / whole:.0f} % of the time in layers"
