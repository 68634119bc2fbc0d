"""Thread budget: how many threads an engine has given to this process."""

from __future__ import annotations

import os
import sys


def assigned_threads() -> int | None:
    """Return the threads that a model may use here; None if its backend is to decide.

    Notes
    -----
    Ray says how many processors an actor or task has; Ray, Dask and Spark set ``OMP_NUM_THREADS``
    in their workers. More than the process may run on are never answered.
    """
    said = _assigned_by_ray() or _said_for_openmp()
    if said is None:
        return None
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(said, cores)


def _assigned_by_ray() -> int | None:
    """Processors of the actor or task that this runs in; None outside of any."""
    # Not imported: a worker of Ray's has it.
    ray = sys.modules.get("ray")
    if ray is None or not getattr(ray, "is_initialized", bool)():
        return None
    context = ray.get_runtime_context()
    if context.worker.mode != ray.WORKER_MODE:  # the driver is given nothing
        return None
    return max(1, int(context.get_assigned_resources().get("CPU", 1)))


def _said_for_openmp() -> int | None:
    """The number that the environment has for OpenMP; None if it has none."""
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return max(1, int(text)) if text.isdecimal() else None
