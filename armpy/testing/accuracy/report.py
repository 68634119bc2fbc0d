"""Report of an accuracy run over models."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field

from armpy.tools.compare.accuracy_measures import Errors, Latency
from armpy.types import BackendId


class Status(enum.StrEnum):
    """Status of one model in an accuracy run.

    Notes
    -----
    OK: the backend ran layers of it and is as exact as CpuRef. INACCURATE: it is further from the
    real numbers than CpuRef times the tolerance. UNSUPPORTED: it runs no layer of it. FAILED: an
    error. CRASHED: the process ended, or did not come to an end.
    """

    OK = "OK"
    INACCURATE = "INACCURATE"
    UNSUPPORTED = "UNSUPPORTED"
    FAILED = "FAILED"
    CRASHED = "CRASHED"


@dataclass(frozen=True, slots=True)
class EngineReport:
    """One engine on one model.

    Parameters
    ----------
    name, version : str
    errors : Errors or None
        Against the float reference; None if there is no answer.
    latency : Latency or None
        None if it was not timed.
    text : str
        Why something is missing.
    """

    name: str
    version: str = ""
    errors: Errors | None = None
    latency: Latency | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """One model.

    Parameters
    ----------
    model : str
        The file.
    status : Status
    text : str
        Why.
    reference : str
        What the errors are counted from: real numbers, or CpuRef where there is no float twin.
    num_layers, num_taken : int
        How many layers it has, and how many of them the backend runs.
    engines : tuple of EngineReport
        The backend, CpuRef, and the peer.
    num_samples : int
    """

    model: str
    status: Status
    text: str = ""
    reference: str = ""
    num_layers: int = 0
    num_taken: int = 0
    engines: tuple[EngineReport, ...] = ()
    num_samples: int = 0

    def engine(self, name: str) -> EngineReport | None:
        """The report of an engine; None if there is none."""
        return next((engine for engine in self.engines if engine.name == name), None)


@dataclass(frozen=True, slots=True)
class AccuracyRun:
    """All models.

    Parameters
    ----------
    backend : str
    models : tuple of ModelReport
    machine : mapping of str to str
        What it ran on.
    settings : mapping of str to str
        How.
    duration_s : float
    """

    backend: BackendId
    models: tuple[ModelReport, ...]
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
            "models": [asdict(m) | {"status": m.status.value} for m in self.models],
        }

    def to_html(self) -> str:
        """Everything as one HTML page that needs nothing else."""
        from armpy.testing.accuracy.page import page  # noqa: PLC0415  # it needs this module

        return page(self)

    def __str__(self) -> str:
        counts = {status: 0 for status in Status}
        for model in self.models:
            counts[model.status] += 1
        shown = ", ".join(f"{number} {status.value}" for status, number in counts.items() if number)
        return f"{self.backend}: {shown or 'no models'}"
