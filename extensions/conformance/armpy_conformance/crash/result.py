"""Results of running crash cases."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import asdict, field

from armpy.core.dataclass import dataclass
from armpy.types import BackendId


class CrashOutcome(enum.StrEnum):
    """Outcome of one case, in words of Android's driver crash tests.

    Notes
    -----
    SUCCESS: every answer was right, or an error that the case allows. FAILURE: a wrong answer, an
    error, or a leak. HANG: no end in time. CRASH: the process ended by itself.
    """

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    HANG = "HANG"
    CRASH = "CRASH"


@dataclass(frozen=True, slots=True)
class CrashResult:
    """One case's outcome."""

    case: str  # ``what happens/network``
    outcome: CrashOutcome
    text: str = ""  # the action, or the failure
    duration_s: float = field(default=0.0, compare=False)  # with the start of the process
    output: str = ""  # the last that the process wrote, such as the traceback of a fault


@dataclass(frozen=True, slots=True)
class CrashRun:
    """All outcomes of a run."""

    backend: BackendId
    seed: int  # with which the run can be repeated
    results: tuple[CrashResult, ...]
    """The first one is of the question which networks the backend takes layers of."""
    left_out: tuple[str, ...] = ()  # networks of which the backend takes no layer
    duration_s: float = field(default=0.0, compare=False)
    takes_layers: bool = True  # whether the backend takes a layer of any network

    @property
    def problems(self) -> tuple[CrashResult, ...]:
        """Everything but successes."""
        return tuple(r for r in self.results if r.outcome is not CrashOutcome.SUCCESS)

    @property
    def is_passed(self) -> bool:
        """Return whether the backend took layers of a network, and all cases have succeeded."""
        return self.takes_layers and not self.problems

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by outcome, every outcome included."""
        counts = Counter(result.outcome for result in self.results)
        return {outcome.value: counts[outcome] for outcome in CrashOutcome}

    def to_document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists."""
        return {
            "backend": self.backend,
            "seed": self.seed,
            "is_passed": self.is_passed,
            "duration_s": round(self.duration_s, 3),
            "counts": self.counts,
            "left_out": list(self.left_out),
            "results": [asdict(r) | {"outcome": r.outcome.value} for r in self.results],
        }

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items() if number)
        return f"{self.backend}: {counts or 'no cases'}"
