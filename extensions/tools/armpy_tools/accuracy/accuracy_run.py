"""A run over models, as data and as a page."""

from __future__ import annotations

from dataclasses import field

import armpy
from armpy.core.dataclass import dataclass
from armpy.types import BackendId
from armpy_tools.accuracy.page import ABOUT, latency_parts, model_details, summary_table
from armpy_tools.accuracy.report import ModelAccuracy, Status
from armpy_tools.pages import Facts, Section, Text, render_page


@dataclass(frozen=True, slots=True)
class AccuracyRun:
    """All models."""

    backend: BackendId
    models: tuple[ModelAccuracy, ...]
    machine: dict[str, str] = field(default_factory=dict)  # of the run
    settings: dict[str, str] = field(default_factory=dict)  # how
    duration_s: float = field(default=0.0, compare=False)

    @property
    def is_passed(self) -> bool:
        """Return whether there are models, and all are OK."""
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
        word, kind = ("passed", "good") if self.is_passed else ("did not pass", "bad")
        verdict = Text(f"{self.backend} {word}: {self._counts}.", f"lead {kind}")
        sections = [
            Section("Overview", [verdict, Text(ABOUT), summary_table(self.backend, self.models)]),
            Section("Latency", [*latency_parts(self.models)]),
            Section("Each model", [model_details(model) for model in self.models]),
            Section("Machine", [Facts([*self.machine.items()])]),
            Section("Settings", [Facts([*self.settings.items()])]),
        ]
        about = f"armpy {armpy.__version__}, took {self.duration_s:.1f} s"
        return render_page(f"Accuracy and latency of {self.backend}", sections, about)

    def __str__(self) -> str:
        return f"{self.backend}: {self._counts}"

    @property
    def _counts(self) -> str:
        """How many models have each status."""
        counts = {status: 0 for status in Status}
        for model in self.models:
            counts[model.status] += 1
        shown = ", ".join(f"{number} {status.value}" for status, number in counts.items() if number)
        return shown or "no models"
