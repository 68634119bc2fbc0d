"""Contract cases, and how one is judged."""

from __future__ import annotations

from collections.abc import Callable

from armpy.core.dataclass import dataclass
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.raised import described
from armpy_conformance.result import CONTRACT, CaseResult, Outcome


class ViolationError(Exception):
    """The contract is broken, and how."""


class NotApplicableError(Exception):
    """The case cannot be tried on this backend, and why."""


class NothingToKeepError(Exception):
    """The rule is about something that this backend does not have: it cannot be broken."""


Check = Callable[[BackendUnderTest], None]
"""Raises one of the errors above for a finding, or the backend's own error."""


@dataclass(frozen=True, slots=True)
class ContractCase:
    """One rule of the contract."""

    id: str  # ``contract/area/rule``
    check: Check


def judge_contract(subject: BackendUnderTest, case: ContractCase) -> CaseResult:
    """Judge one contract case; whatever is raised is a failure that names the rule."""
    where = f"{subject.backend_id} / {case.id}"
    try:
        case.check(subject)
        outcome, text = Outcome.PASSED, ""
    except NothingToKeepError as nothing:
        outcome, text = Outcome.PASSED, str(nothing)
    except NotApplicableError as no:
        outcome, text = Outcome.UNSUPPORTED, str(no)
    except ViolationError as violation:
        outcome, text = Outcome.FAILED, f"{where}: {violation}"
    except Exception as error:  # noqa: BLE001 - the backend's code may raise anything
        outcome, text = Outcome.FAILED, f"{where}: {described(error)}"
    return CaseResult(case.id, CONTRACT, "", outcome, text)


def check(condition: object, violation: str) -> None:
    """Raise a `ViolationError` unless the condition holds."""
    if not condition:
        raise ViolationError(violation)
