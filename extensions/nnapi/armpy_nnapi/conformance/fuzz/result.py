"""Results of a search for failures."""

from __future__ import annotations

from dataclasses import asdict, field

from armpy.core.dataclass import dataclass
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class Finding:
    """A model on which a backend fails."""

    outcome: str  # ``failed`` or ``crashed``
    operation: str  # of the model, if it has one
    text: str  # the failure, and its smallest part
    file: str  # holds the bytes that make the model
    reproducer: str  # the command that shows it again


@dataclass(frozen=True, slots=True)
class FuzzRun:
    """A search."""

    backend: BackendId
    engine: str  # ``atheris`` where it has guided the search, else ``seeded``
    seed: int  # with which a seeded search is repeated
    num_models: int  # how many were tried
    num_run: int | None  # on how many of them layers ran on the backend; None if that is not known
    findings: tuple[Finding, ...]
    shortcomings: tuple[str, ...] = ()  # why the run proves nothing
    duration_s: float = field(default=0.0, compare=False)

    @property
    def is_passed(self) -> bool:
        """Return whether models ran on the backend, and none has failed."""
        return not (self.findings or self.shortcomings)

    def to_document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists."""
        return asdict(self) | {"is_passed": self.is_passed}

    def __str__(self) -> str:
        ran = "" if self.num_run is None else f", of which it ran layers of {self.num_run}"
        return (
            f"{self.backend}: {len(self.findings)} findings in {self.num_models} models{ran} "
            f"({self.engine}, seed {self.seed})"
        )
