"""Remarks on measured numbers, to be read before they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from armpy_tools.benchmark.machine import busy_note
from armpy_tools.benchmark.results import MachineState
from armpy_tools.benchmark.subjects import ARMPY, Plan, Subject
from armpy_tools.measure.latency import Latency

UNSTEADY = 0.15
"""Spread of runs that is worth a remark."""

_RARE = 3.0
"""How much longer one run in a hundred may take."""

_COLD = 3.0
"""How much longer the first load takes where something had to be compiled."""

_FEW_RUNS = 20


def remarks_on_all(
    machine: MachineState, plan: Plan, processes: int, *, interrupted: bool
) -> tuple[str, ...]:
    """Return remarks on the numbers of all subjects."""
    notes = []
    if interrupted:
        notes.append(
            f"Stopped early: {processes} of {plan.processes} rounds of processes came to their end."
        )
    if note := busy_note(machine):
        is_during = machine.others is not None
        notes.append(f"{note} Ratios suffer less, as turns alternate." if is_during else note)
    return tuple(notes)


def remarks_on_subject(
    subject: Subject, latency: Latency | None, load_ms: Sequence[float]
) -> tuple[str, ...]:
    """Return remarks on the numbers of one subject."""
    notes = []
    if latency is not None and latency.spread > UNSTEADY:
        notes.append(
            f"runs vary a lot: half of them by more than {latency.spread:.0%} of the median"
        )
    elif latency is not None and latency.p99_ms > _RARE * latency.median_ms:
        notes.append(
            f"one run in a hundred takes {latency.p99_ms / latency.median_ms:.1f} times the median"
        )
    if latency is not None and latency.runs < _FEW_RUNS:
        notes.append(f"{latency.runs} runs are few for percentiles; more show more")
    if len(load_ms) > 1 and load_ms[0] > _COLD * median(load_ms[1:]):
        notes.append("the first load took longer than later ones: it compiled, or read the disk")
    if subject.engine == ARMPY and (subject.num_threads or 1) > 1 and subject.callers > 1:
        notes.append("callers share the threads of the backend")
    return tuple(notes)
