"""Preparation request of a subgraph, and the files that a backend keeps of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from armpy.backend.options import NO_OPTIONS, OptionValues
from armpy.types import Preference, Priority


@dataclass(frozen=True, eq=False, slots=True)
class PreparationRequest:
    """Request to prepare a subgraph: options, preference, priority, deadline.

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
        float16. Since 1.6.

    Notes
    -----
    Since 1.3; minor versions may add fields.

    References
    ----------
    NNAPI ``IDevice::prepareModel_1_3``, ``relaxComputationFloat32toFloat16``.
    """

    model_options: OptionValues = field(default_factory=lambda: NO_OPTIONS)
    preference: Preference = Preference.ORDER
    priority: Priority = Priority.MEDIUM
    deadline_s: float | None = None
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class CompiledFiles:
    """Contents of the cache files of one prepared subgraph.

    Parameters
    ----------
    model : tuple of bytes
        As many as `IBackendInternal.number_of_cache_files`: what goes by the subgraph's structure.
    data : tuple of bytes
        As many as `IBackendInternal.number_of_data_cache_files`: constants, for example.

    Notes
    -----
    Since 1.3. Neither is looked into by the core, which adds checksums of its own.

    References
    ----------
    NNAPI ``modelCache`` and ``dataCache``.
    """

    model: tuple[bytes, ...] = ()
    data: tuple[bytes, ...] = ()
