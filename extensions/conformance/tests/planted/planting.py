"""A row of the tables of faults, and its judge in a forked child, as it may end its process."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from armpy.backend import IBackendInternal, cache_directory
from armpy.errors import BackendUnavailableError
from armpy_conformance import CaseResult, Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cases import operation_cases
from armpy_conformance.conformance import NamedCase, cases_for
from armpy_conformance.processes.process_state import captured_output
from armpy_conformance.raised import described

from ..kit_runs import options_for


class PlantedFault(Protocol):
    """A row: a backend with a fault, and the rule that has to find it."""

    @property
    def area(self) -> str:
        """Part of the ids of the cases to try first: a rule of the contract, or an operation."""

    @property
    def said(self) -> str:
        """A pattern in the failure's text."""

    def subject(self, folder: Path) -> BackendUnderTest:
        """The backend; `folder` is empty and for its files."""


@dataclass(frozen=True)
class Planted:
    """A fault in a backend of some shape."""

    area: str  # part of the ids of the cases that have to find it
    shape: Callable[..., IBackendInternal]  # the backend, or the one that has the fault itself
    change: Callable[[], object] | None = None  # makes what the shape is given: the fault
    said: str = ""  # a pattern in the failure's text
    soak: int = 0  # executions in the rule about many executions

    def make(self) -> IBackendInternal:
        """A backend with the fault, which has no state yet."""
        return self.shape() if self.change is None else self.shape(self.change())

    def subject(self, folder: Path) -> BackendUnderTest:
        """The backend, of which nothing is in a folder."""
        backend = self.make()
        return BackendUnderTest(backend.get_id(), options_for(backend), self.soak)


Cases = Callable[[BackendUnderTest, str], Iterator[NamedCase]]
"""The cases of an area of a backend, in the order in which they are tried."""


def cases_of_area(subject: BackendUnderTest, area: str) -> Iterator[NamedCase]:
    """The cases of an area."""
    return (case for case in cases_for(subject) if area in case.id)


def area_first(subject: BackendUnderTest, area: str) -> Iterator[NamedCase]:
    """The cases of an area, then every other rule of the contract, then all that is left."""
    cases = list(cases_for(subject))
    others = [case for case in cases if area not in case.id]
    yield from (case for case in cases if area in case.id)
    yield from (case for case in others if case.id.startswith("contract/"))
    yield from (case for case in others if not case.id.startswith("contract/"))


def first_bad_apart(planted: PlantedFault, cases: Cases = area_first) -> CaseResult | None:
    """The first case that fails on a backend with a fault, judged in a forked child.

    None if the kit misses the fault. A child that is ended by the backend has found it, too, as
    has a registry that does not load the backend.

    Raises RuntimeError if the fault cannot be tried.
    """
    operation_cases()  # made once, for all children
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        child = os.fork()
        if child == 0:
            _judge(planted, cases, Path(folder) / "backend", answer)
        _, status = os.waitpid(child, 0)
        try:
            found = json.loads(answer.read_text("utf-8"))
        except (OSError, ValueError):
            text = f"the process ended with status {status}"
            return CaseResult("process", "process", "", Outcome.CRASHED, text)
    if found is not None and "error" in found:
        raise RuntimeError(found["error"])
    return None if found is None else CaseResult(**found | {"outcome": Outcome(found["outcome"])})


def _leave_to(folder: Path) -> None:
    """Have files that are written without a thought in a folder; armpy's cache stays."""
    os.environ["ARMPY_CACHE_DIR"] = str(cache_directory())
    os.environ["HOME"] = os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.chdir(folder)


def _judge(planted: PlantedFault, cases: Cases, folder: Path, answer: Path) -> None:
    """Judge in the child, and end it."""
    try:
        folder.mkdir()
        _leave_to(answer.parent)
        with captured_output():
            subject = planted.subject(folder)
            results = (case.judge(subject) for case in cases(subject, planted.area))
            bad = next((result for result in results if result.outcome.is_bad), None)
            found = None if bad is None else asdict(bad) | {"outcome": bad.outcome.value}
            answer.write_text(json.dumps(found), "utf-8")
    except BackendUnavailableError as error:
        refused = CaseResult("registry", "registry", "", Outcome.FAILED, str(error))
        answer.write_text(json.dumps(asdict(refused) | {"outcome": "failed"}), "utf-8")
    except BaseException as error:  # noqa: BLE001 - raised again by the parent
        answer.write_text(json.dumps({"error": described(error)}), "utf-8")
    finally:
        os._exit(0)  # without the parent's exit handlers
