"""Results of probing a candidate."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields

from armpy.plugins.discovery.candidate import CandidateStatus


class ProbeOutcome(enum.Enum):
    """End of the child process that loaded a candidate."""

    OK = "ok"
    REJECTED = "rejected"
    RAISED = "raised"
    EXITED = "exited"
    CRASHED = "crashed"
    HUNG = "hung"
    NOT_RUN = "not run"


_REMEMBERED = (ProbeOutcome.OK, ProbeOutcome.CRASHED, ProbeOutcome.HUNG)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a probe."""

    outcome: ProbeOutcome
    reason: str = ""
    """Why it did not pass."""
    traceback: str = ""
    """Of what it raised."""
    output: str = ""
    """The last that it wrote to its standard output and error."""
    exit_code: int | None = None
    """If it exited."""
    # Empty as far as it did not get there.
    backend_id: str = ""
    api_version: str = ""
    device_type: str = ""
    # Empty unless one could not be found.
    missing_module: str = ""
    missing_library: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    """What the examination of the backend returned."""
    duration_s: float = 0.0
    """How long it took, when it was run."""
    remembered: bool = False
    """Whether this is the result of an earlier probe of the same files."""

    @property
    def passed(self) -> bool:
        """Whether the backend was loaded and made."""
        return self.outcome is ProbeOutcome.OK

    @property
    def is_worth_remembering(self) -> bool:
        """Whether asking again costs much or is certain to give the same.

        Notes
        -----
        What a candidate raises is often cured by installing something else, and quick to ask.
        """
        return self.outcome in _REMEMBERED

    @property
    def status(self) -> CandidateStatus:
        """The status of a candidate that this was found out about."""
        if self.outcome is ProbeOutcome.EXITED:  # sys.exit() has a traceback, os._exit() none
            return CandidateStatus.FAILED if self.traceback else CandidateStatus.CRASHED
        return _STATUSES[self.outcome]

    def as_fields(self) -> dict[str, object]:
        """The result in the form of JSON."""
        return {**asdict(self), "outcome": self.outcome.value}


_STATUSES = {
    ProbeOutcome.OK: CandidateStatus.FOUND,
    ProbeOutcome.REJECTED: CandidateStatus.REJECTED,
    ProbeOutcome.RAISED: CandidateStatus.FAILED,
    ProbeOutcome.CRASHED: CandidateStatus.CRASHED,
    ProbeOutcome.HUNG: CandidateStatus.HUNG,
    ProbeOutcome.NOT_RUN: CandidateStatus.REJECTED,
}


def result_from(fields: object) -> ProbeResult | None:
    """The result in fields of JSON; None if they are not those of one, which says why it failed."""
    if not isinstance(fields, dict):
        return None
    try:
        outcome = ProbeOutcome(fields["outcome"])
        details = fields.get("details") or {}
        result = ProbeResult(**{**fields, "outcome": outcome, "details": dict(details)})
    except (KeyError, TypeError, ValueError):
        return None
    texts = [getattr(result, each.name) for each in dataclass_fields(result) if each.default == ""]
    numbers = result.exit_code, result.duration_s
    # From a process in which the candidate's code ran, which may say anything.
    is_sound = (
        all(isinstance(text, str) for text in texts)
        and all(number is None or type(number) in (int, float) for number in numbers)
        and isinstance(result.remembered, bool)
        and (result.passed or bool(result.reason.strip()))
    )
    return result if is_sound else None
