"""Results of a conformance run."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, field

from armpy.core.dataclass import dataclass
from armpy.types import BackendId

CONTRACT = "contract"
"""Stands for the operation in tables, for cases of the contract."""


class Outcome(enum.Enum):
    """Outcome of one case.

    Notes
    -----
    A case has passed if the backend under test gave its answer, or has kept a rule of the
    contract. An answer of the core or of another backend is `ELSEWHERE`: it proves nothing. A case
    has crashed if its process was ended by a signal, an exit or the time limit; exceptions are
    failures.
    """

    PASSED = "passed"
    ELSEWHERE = "answered elsewhere"
    UNSUPPORTED = "unsupported"
    KNOWN = "known failure"
    FAILED = "failed"
    CRASHED = "crashed"

    @property
    def is_bad(self) -> bool:
        """Return whether it fails the run."""
        return self in (Outcome.FAILED, Outcome.CRASHED)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case's outcome."""

    case: str  # its id
    operation: str  # name of the operation, or ``contract``
    data_type: str  # of the first input
    outcome: Outcome
    text: str = ""
    """The backend's own reason for an unsupported case, or the description of a failure."""
    # Of each layer that the backend said it supports and has to show here, and of each that ran on
    # it: operation and data type.
    claimed: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    output: str = ""
    """The last lines that the case's process wrote while it was judged, of a failure."""


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """All outcomes of a run."""

    backend: BackendId
    backend_version: str
    api_version: str
    results: tuple[CaseResult, ...]  # in the order of the run
    unused_known_failures: tuple[str, ...] = ()  # ids listed as known failures that did not fail
    duration_s: float = field(default=0.0, compare=False)
    num_selected: int = 0
    """Cases that were to be tried; an early end leaves some of them out."""

    @property
    def is_passed(self) -> bool:
        """True if the backend ran layers, nothing failed, and every known failure did fail."""
        return not (self.problems or self.unused_known_failures or self.shortcomings)

    @property
    def problems(self) -> tuple[CaseResult, ...]:
        """Return the crashes, then the failures."""
        bad = [result for result in self.results if result.outcome.is_bad]
        return tuple(sorted(bad, key=lambda result: result.outcome is not Outcome.CRASHED))

    @property
    def layers_run(self) -> int:
        """Return how many layers of all cases ran on the backend."""
        return sum(len(result.ran) for result in self.results)

    @property
    def exercised(self) -> float | None:
        """Share of the layers that the backend claims and that ran on it; None if it claims none.

        Notes
        -----
        It claims each layer of its own about which it says yes in a case of one operation, and
        every layer of the patterns that it declares.
        """
        claims = [result for result in self.results if result.claimed]
        claimed = sum(len(result.claimed) for result in claims)
        return sum(len(result.ran) for result in claims) / claimed if claimed else None

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """Why the run proves nothing, or not all that the backend claims; empty if it does."""
        tried = [result for result in self.results if result.operation != CONTRACT]
        num_left = self.num_selected - len(self.results)
        left = (f"{num_left} of {self.num_selected} cases were not tried",) if num_left > 0 else ()
        if tried and not self.layers_run and not self.problems:
            return (*left, f"no layer ran on {self.backend}: this proves nothing about it")
        accounted = {
            kind
            for result in tried
            for kind in (
                (*result.ran, *result.claimed)
                if result.outcome.is_bad or result.outcome is Outcome.KNOWN
                else result.ran
            )
        }
        claimed = Counter(kind for result in tried for kind in result.claimed)
        return (
            *left,
            *(
                f"{self.backend} says that it supports {kind}, and ran none of {count} such layers"
                for kind, count in claimed.items()
                if kind not in accounted
            ),
        )

    @property
    def main_refusals(self) -> tuple[str, ...]:
        """Reasons for which the backend refuses most cases of an operation of which it runs some.

        A reason that is about the kit's cases and not about the operation would hide that the
        operation is hardly tried.
        """
        tried = Counter(r.operation for r in self.results if r.operation != CONTRACT)
        refused = Counter(
            (r.operation, r.text) for r in self.results if r.outcome is Outcome.UNSUPPORTED
        )
        running = {result.operation for result in self.results if result.ran}
        return tuple(
            f"{count} of {tried[operation]} cases of {operation} are refused: {reason}"
            for (operation, reason), count in refused.most_common()
            if operation in running and 2 * count > tried[operation]
        )

    @property
    def coverage(self) -> str:
        """Return how many layers ran, and the share of the backend's claims, in words."""
        text = f"layers run on {self.backend}: {self.layers_run}"
        if self.exercised is None:
            return text
        percent = int(1000 * self.exercised) / 10  # rounded down: 100 % is all
        return f"{text}; of its claims, {percent:g} % ran on it"

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by outcome, every outcome included."""
        by_outcome = Counter(result.outcome for result in self.results)
        return {outcome.value: by_outcome[outcome] for outcome in Outcome}

    @property
    def by_operation(self) -> dict[str, dict[str, int]]:
        """Number of cases by operation, then by outcome."""
        return self._grouped([result.operation for result in self.results])

    @property
    def by_data_type(self) -> dict[str, dict[str, int]]:
        """Number of cases by data type, then by outcome."""
        return self._grouped([result.data_type for result in self.results])

    def _grouped(self, keys: Sequence[str]) -> dict[str, dict[str, int]]:
        """Counts by key, in alphabetical order, then by outcome."""
        by_key = Counter(
            (key, result.outcome) for key, result in zip(keys, self.results, strict=True)
        )
        return {
            key: {outcome.value: by_key[key, outcome] for outcome in Outcome}
            for key in sorted(set(keys))
        }

    def to_json(self, indent: int | None = None) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_document(), indent=indent)

    def to_document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists."""
        return {
            "backend": self.backend,
            "backend_version": self.backend_version,
            "api_version": self.api_version,
            "is_passed": self.is_passed,
            "layers_run": self.layers_run,
            "exercised": self.exercised,
            "shortcomings": list(self.shortcomings),
            "main_refusals": list(self.main_refusals),
            "duration_s": round(self.duration_s, 3),
            "counts": self.counts,
            "by_operation": self.by_operation,
            "by_data_type": self.by_data_type,
            "unused_known_failures": list(self.unused_known_failures),
            "results": [asdict(r) | {"outcome": r.outcome.value} for r in self.results],
        }

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items() if number)
        return f"{self.backend}: {counts or 'no cases'}"


def is_selected(filter: str | Sequence[str], *places: str) -> bool:
    """Return whether one of a filter's texts is in one of some names; True without texts.

    A text of the form ``^TEXT`` selects names that begin with it.
    """
    texts = [filter] if isinstance(filter, str) else [*filter] or [""]
    # Each name gets the `^` with which such a text begins.
    return any(text.lower() in f"^{place}".lower() for text in texts for place in places)
