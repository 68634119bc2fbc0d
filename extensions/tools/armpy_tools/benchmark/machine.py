"""The machine, and how busy others keep it."""

from __future__ import annotations

import os
from collections.abc import Callable

from armpy.core.machine import describe_machine
from armpy_tools.benchmark.results import MachineState

BUSY = 0.15
"""Share of the processors that others may take before it is worth a remark."""

_STATISTICS = "/proc/stat"
_IDLE = (3, 4)
"""Columns of a processor's times that are not work: idle, and waiting for disks."""

_GUEST = 8
"""From this column on, times are counted a second time in others."""


class MachineLoad:
    """Load of the machine by others while something is measured.

    Parameters
    ----------
    busy_s : callable, optional
        Seconds that all processors together have been busy, None if not known.
    """

    def __init__(self, busy_s: Callable[[], float | None] | None = None) -> None:
        self._busy_s = busy_s or busy_seconds
        self._load = _load()
        self._began_s: float | None = None
        self._others_s = self._wall_s = 0.0

    def begin(self) -> None:
        """Begin to watch."""
        self._began_s = self._busy_s()

    def end(self, wall_s: float, own_s: float) -> None:
        """Store the measurements since `begin`.

        Parameters
        ----------
        wall_s : float
            That have passed.
        own_s : float
            That the processes that are measured, and this one, have computed.
        """
        now_s = self._busy_s()
        if now_s is None or self._began_s is None:
            return
        self._others_s += max(now_s - self._began_s - own_s, 0.0)
        self._wall_s += wall_s

    @property
    def state(self) -> MachineState:
        """Return the observed state."""
        others = self._others_s / self._wall_s if self._wall_s else None
        return MachineState(describe_machine(), processors(), self._load, others)


def busy_note(machine: MachineState) -> str:
    """Remark on a machine that other processes kept busy; empty if it was idle."""
    others, count = machine.others, machine.processors
    if others is not None and others > BUSY * count:
        return (
            f"The machine was busy: other processes took {others:.1f} of {count} processors. Times"
            " are longer than on an idle machine, and vary more."
        )
    if others is None and machine.load_before is not None and machine.load_before > count:
        return (
            f"The machine was busy before: {machine.load_before:.1f} processes for {count}"
            " processors."
        )
    return ""


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busy_seconds() -> float | None:
    """Seconds that the processors which this process may use have been busy; None if not known."""
    configuration = getattr(os, "sysconf", None)
    if not hasattr(os, "sched_getaffinity") or configuration is None:
        return None
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    try:
        with open(_STATISTICS, encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("cpu")]
        times = [list(map(int, row[1 : 1 + _GUEST])) for row in rows if row[0] in names]
    except (OSError, ValueError):
        return None
    ticks = sum(sum(row) - sum(row[column] for column in _IDLE) for row in times)
    return ticks / int(configuration("SC_CLK_TCK")) if times else None


def _load() -> float | None:
    """Processes that ran or waited to run in the last minute."""
    averages = getattr(os, "getloadavg", None)
    try:
        return None if averages is None else float(averages()[0])
    except OSError:
        return None
