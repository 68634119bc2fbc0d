"""Preparation request: what an application wants of a network that a backend prepares."""

from __future__ import annotations

from dataclasses import dataclass, field

from armpy.backend.options import NO_OPTIONS, OptionValues
from armpy.types import Preference, Priority


@dataclass(frozen=True, eq=False, slots=True)
class PreparationRequest:
    """Request to prepare a network or a part of it: options, preference, priority, deadline.

    Parameters
    ----------
    model_options : mapping of str to value
        Every declared option of scope MODEL, checked; empty if the caller gave none.
    preference : Preference
        What matters; ORDER if the application has not said it.
    priority : Priority
        Of the network's executions against those of others.
    deadline_s : float, optional
        By `time.perf_counter`, when the preparation is no longer waited for: its layers go to the
        next backend then. None if there is no limit.
    relaxed : bool
        Whether the application allows float32 to be computed with the range and precision of
        float16.

    References
    ----------
    NNAPI ``IDevice::prepareModel_1_3``, ``relaxComputationFloat32toFloat16``.
    """

    # From a function: before Python 3.12 dataclasses take the mapping for a mutable default.
    model_options: OptionValues = field(default_factory=lambda: NO_OPTIONS)
    preference: Preference = Preference.ORDER
    priority: Priority = Priority.MEDIUM
    deadline_s: float | None = None
    relaxed: bool = False
