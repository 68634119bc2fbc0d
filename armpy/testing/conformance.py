"""Runs conformance cases on a backend: the one function behind the command and the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from armpy.errors import InvalidArgumentError
from armpy.runtime import RuntimeOptions
from armpy.testing.cases import operation_cases
from armpy.testing.cases.patterns import kit_patterns
from armpy.testing.contract import CONTRACT_CASES, judge_contract
from armpy.testing.judge import judge
from armpy.testing.known_failures import apply_known_failures, read_known_failures
from armpy.testing.patterns import judge_declared, judge_pattern
from armpy.testing.result import CaseResult, ConformanceResult
from armpy.testing.subject import Subject
from armpy.types import BackendId

Progress = Callable[[CaseResult], None]
"""Is told about each case when it has been judged."""


@dataclass(frozen=True, slots=True)
class NamedCase:
    """One case of either kind, ready to be judged.

    Parameters
    ----------
    id : str
    judge : callable
        Takes the backend under test and gives the outcome.
    """

    id: str
    judge: Callable[[Subject], CaseResult]


def all_cases() -> Iterator[NamedCase]:
    """Every case that there is for any backend: of the contract, of operations, of patterns."""
    for contract_case in CONTRACT_CASES:
        yield NamedCase(contract_case.id, partial(judge_contract, case=contract_case))
    for case in operation_cases():
        yield NamedCase(case.id, partial(judge, case=case))
    for pattern in kit_patterns():
        name = f"pattern/{pattern.name}"
        yield NamedCase(name, partial(judge_pattern, case=name, pattern=pattern))


def cases_for(subject: Subject) -> Iterator[NamedCase]:
    """Every case for one backend: those for all, and the patterns that it declares.

    Raises
    ------
    BackendError
        If the backend's declaration of patterns cannot be read.
    """
    yield from all_cases()
    for pattern in subject.patterns:
        name = f"declared/{pattern.name}"
        yield NamedCase(name, partial(judge_declared, case=name, pattern=pattern))


def run_conformance(
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    filter: str = "",
    known_failures: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ConformanceResult:
    """Find out whether a backend keeps its contract and gives right answers.

    Parameters
    ----------
    backend_id : str
    runtime_options : RuntimeOptions, optional
        Where backends are found, and the backend's options; its `backends` does not count.
    filter : str
        Run only cases whose ids contain this text.
    known_failures : path, optional
        File of failures that do not fail the run; see `read_known_failures`.
    progress : callable, optional
        Is given each `CaseResult` as it comes.

    Returns
    -------
    ConformanceResult

    Raises
    ------
    BackendUnavailableError
        If the backend cannot be used.
    BackendError
        If its declaration of patterns cannot be read; see `Pattern`.
    InvalidArgumentError
        If no case is selected, or the file of known failures cannot be read.

    Examples
    --------
    >>> from armpy.testing import run_conformance
    >>> run_conformance("CpuRef", filter="Rank/").is_passed
    True
    """
    subject = Subject(backend_id, runtime_options)
    everything = list(cases_for(subject))
    chosen = [case for case in everything if filter.lower() in case.id.lower()]
    if not chosen:
        raise InvalidArgumentError("no case is selected", where="filter", actual=repr(filter))
    known = {}
    if known_failures is not None:
        known = read_known_failures(os.fspath(known_failures), {case.id for case in everything})
    started = time.perf_counter()
    results = []
    for case in chosen:
        result = case.judge(subject)
        results.append(result)
        if progress is not None:
            progress(result)
    judged, unused = apply_known_failures(results, known)
    backend = subject.backend
    return ConformanceResult(
        backend.backend_id,
        backend.version,
        backend.api_version,
        judged,
        unused,
        time.perf_counter() - started,
    )
