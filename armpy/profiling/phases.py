"""Trace phases: what an event is to people who look at a whole driver stack."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from armpy.profiling.events import EventKind


class TracePhase(enum.StrEnum):
    """Phase of a network's life in which an event takes time.

    References
    ----------
    NNAPI ``NNTRACE`` phases, ``Tracing.h``.
    """

    VALIDATION = "validation"
    """A model is checked."""
    COMPILATION = "compilation"
    """The network is simplified and divided among backends, which optimise their parts."""
    PREPARATION = "preparation"
    """Workloads and memory are made for it."""
    TRANSFER = "transfer"
    """Tensors are copied from one memory to another."""
    EXECUTION = "execution"
    """The network is executed: all of it, a layer, or a command of a backend."""
    QUEUEING = "queueing"
    """An execution waits."""


_OF_LOADING: Mapping[str, TracePhase] = MappingProxyType(
    {
        "load": TracePhase.PREPARATION,
        "prepare": TracePhase.PREPARATION,
        "prepare workload": TracePhase.PREPARATION,
        "open session": TracePhase.PREPARATION,
        "make working memory": TracePhase.PREPARATION,
        "validate": TracePhase.VALIDATION,
    }
)
"""Phases of loading that are not part of compilation."""

_TRANSFERS = frozenset(("MemCopy",))
"""Operations that copy from one memory to another."""


def phase_of(
    kind: EventKind,
    # `name` and `operation`: as for `ProfilingEvent`.
    name: str,
    operation: str = "",
) -> TracePhase:
    """Return the phase of a network during an event of a profile."""
    if kind in (EventKind.WAITING, EventKind.QUEUED):
        return TracePhase.QUEUEING
    if kind is EventKind.LOAD:
        return _OF_LOADING.get(name, TracePhase.COMPILATION)
    return TracePhase.TRANSFER if operation in _TRANSFERS else TracePhase.EXECUTION
