"""A run over models, as data and as a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from armpy.testing.accuracy.report import ModelAccuracy, Status
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class AccuracyRun:
    """All models.

    Parameters
    ----------
    backend : str
    models : tuple of ModelAccuracy
    machine : mapping of str to str
        What it ran on.
    settings : mapping of str to str
        How.
    duration_s : float
    """

    backend: BackendId
    models: tuple[ModelAccuracy, ...]
    machine: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    duration_s: float = field(default=0.0, compare=False)

    @property
    def is_passed(self) -> bool:
        """Whether there are models, and all are OK."""
        return bool(self.models) and all(model.status is Status.OK for model in self.models)

    def to_document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists; infinite errors are null in JSON."""
        return {
            "backend": self.backend,
            "is_passed": self.is_passed,
            "machine": dict(self.machine),
            "settings": dict(self.settings),
            "duration_s": round(self.duration_s, 3),
            "models": [model.to_document() for model in self.models],
        }

    def to_html(self) -> str:
        """Everything as one HTML page that needs nothing else."""
        from armpy.testing.accuracy.page import page  # noqa: PLC0415 - few want one

        return page(self)

    def __str__(self) -> str:
        counts = {status: 0 for status in Status}
        for model in self.models:
            counts[model.status] += 1
        shown = ", ".join(f"{number} {status.value}" for status, number in counts.items() if number)
        return f"{self.backend}: {shown or 'no models'}"
