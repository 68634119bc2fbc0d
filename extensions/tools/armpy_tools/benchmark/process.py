"""A subject in a process of its own, as the one that measures sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from armpy.core.dataclass import dataclass
from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import DeadObjectError
from armpy_tools.benchmark.bursts import SubjectTurn
from armpy_tools.benchmark.results import LayerCost, MemoryUse
from armpy_tools.benchmark.subjects import Subject

_LONGEST_S = 24 * 3600.0
"""For which an answer is waited: compiling may take minutes, and the user can stop it."""


@dataclass(frozen=True, slots=True)
class PreparedSubject:
    """A subject that was loaded and run once."""

    load_s: float
    first_s: float
    items: int  # of the batch of one run


class ISubjectProcess(Protocol):
    """A subject that can be measured."""

    def prepare(self, seed: int) -> PreparedSubject:
        """Load it, and run it once on random inputs; raises ArmpyError."""

    def run(self, seconds: float, runs: int | None, unmeasured: int) -> SubjectTurn:
        """Take a turn; see `run_burst`."""

    def describe(self, *, in_full: bool) -> tuple[str, MemoryUse]:
        """Its placement and memory; the peak alone unless all is asked for."""

    def layers(self, runs: int) -> tuple[LayerCost, ...]:
        """Return the limits of each layer."""

    def close(self) -> None:
        """Give everything back."""


Start = Callable[[Subject], ISubjectProcess]
"""Begins to measure a subject."""


class SubjectProcess:
    """A subject in a process of its own."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        settings = WorkerSettings(memory_bytes=0)
        self._worker = Worker(
            "armpy_tools.benchmark.child:make_handler", settings, where=subject.engine
        )

    def _ask(self, order: str, **arguments: object) -> dict[str, Any]:  # Any: as it answers
        """Ask the process for something; if it crashes, that is the subject's result."""
        try:
            return self._worker.request({"order": order, **arguments}, timeout_s=_LONGEST_S)
        except DeadObjectError as error:
            failed = f"its process has crashed: {self._worker.reason}"
            raise DeadObjectError(failed, where=self._subject.engine) from error

    def prepare(self, seed: int) -> PreparedSubject:
        """Load it, and run it once on random inputs; raises ArmpyError."""
        return PreparedSubject(**self._ask("prepare", subject=asdict(self._subject), seed=seed))

    def run(self, seconds: float, runs: int | None, unmeasured: int) -> SubjectTurn:
        """Take a turn; see `run_burst`."""
        answer = self._ask("run", seconds=seconds, runs=runs, unmeasured=unmeasured)
        return SubjectTurn(tuple(answer["durations_us"]), answer["wall_s"], answer["processors_s"])

    def describe(self, *, in_full: bool) -> tuple[str, MemoryUse]:
        """Its placement and memory; the peak alone unless all is asked for."""
        answer = self._ask("describe", in_full=in_full)
        return answer.pop("placement"), MemoryUse(**answer)

    def layers(self, runs: int) -> tuple[LayerCost, ...]:
        """Return the limits of each layer."""
        return tuple(LayerCost(**fields) for fields in self._ask("layers", runs=runs)["layers"])

    def close(self) -> None:
        """End the process."""
        self._worker.stop()
