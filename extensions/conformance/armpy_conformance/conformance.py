"""Runs conformance cases on a backend: the one function of the command and the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.core.processes.worker import default_memory_bytes
from armpy.errors import Argument, BackendError, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cases import operation_cases
from armpy_conformance.cases.control_flow import control_flow_cases
from armpy_conformance.cases.graph_patterns import graph_patterns
from armpy_conformance.cases.patterns import kit_patterns
from armpy_conformance.cases.strings import string_cases
from armpy_conformance.contract import CONTRACT_CASES, judge_contract
from armpy_conformance.judge import judge
from armpy_conformance.known_failures import apply_known_failures, read_known_failures
from armpy_conformance.patterns import judge_declared, judge_pattern
from armpy_conformance.result import CONTRACT, CaseResult, ConformanceResult, Outcome, is_selected
from armpy_conformance.workers import Judge, JudgingWorker, LostItem, judge_in_workers

Progress = Callable[[CaseResult, int, int], None]
"""Receives the result of each case, the number of results so far, and that of all cases."""

_FIRST = ("contract/identity/", "contract/process/")
"""Beginnings of the ids of rules that are tried before anything has used the backend."""

_BATCH = 64
"""Cases that a process takes at a time."""

_LIST = "list:"
"""Beginning of a request for ids in the place of one for a case."""

_OPEN = "open:"
"""Request to check that the backend can be used, in the place of one for a case."""

_PAGE = 2000
"""Ids in one answer of a process."""

_MOST_MEMORY_BYTES = 8 << 30
"""Memory of a process that judges cases, on machines with more; no case needs a fourth of it."""

CASE_TIMEOUT_S = 300.0
"""How long one case may take in a process of its own."""


@dataclass(frozen=True, slots=True)
class NamedCase:
    """One case of either kind, ready to be judged."""

    id: str
    judge: Callable[[BackendUnderTest], CaseResult]
    """Takes the backend under test and gives the outcome."""


def all_cases() -> Iterator[NamedCase]:
    """Every case that there is for any backend: of the contract, of operations, of patterns."""
    for contract_case in CONTRACT_CASES:
        yield NamedCase(contract_case.id, partial(judge_contract, case=contract_case))
    for case in (*operation_cases(), *string_cases(), *control_flow_cases()):
        yield NamedCase(case.id, partial(judge, case=case))
    for pattern in (*kit_patterns(), *graph_patterns()):
        name = f"pattern/{pattern.name}"
        yield NamedCase(name, partial(judge_pattern, case=name, pattern=pattern))


def cases_for(subject: BackendUnderTest) -> Iterator[NamedCase]:
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


def cases_of(
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    filter: str | Sequence[str] = "",
) -> tuple[str, ...]:
    """Ids of the cases that `run_conformance` would run, in its order; nothing is run.

    Parameters
    ----------
    filter : str or sequence of str
        As of `run_conformance`, which raises the same.
    """
    subject = BackendUnderTest(backend_id, runtime_options)
    return tuple(_selected([case.id for case in cases_for(subject)], filter))


def run_conformance(
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    filter: str | Sequence[str] = "",
    known_failures: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    fail_fast: bool = False,
    jobs: int | None = None,
    memory_bytes: int | None = None,
    soak: int = 0,
    first: Collection[str] = (),
    time_limit_s: float | None = None,
) -> ConformanceResult:
    """Find out whether a backend keeps its contract and gives right answers.

    Parameters
    ----------
    runtime_options : RuntimeOptions, optional
        Where backends are found, and the backend's options; its `backends` does not count.
    filter : str or sequence of str
        Run only cases whose ids contain this text, or one of these texts.
    known_failures : path, optional
        File of failures that do not fail the run; see `read_known_failures`.
    progress : callable, optional
        Is given each `CaseResult` as it comes, with the number of results so far and of all cases.
    fail_fast : bool
        End with the first case that fails and is not a known failure.
    jobs : int, optional
        Judge the cases in so many processes: one that the backend ends, or a case that takes
        longer than five minutes, has crashed, and the others go on. In this process if left out.
    memory_bytes : int, optional
        Limit of the memory of each of these processes, 0 for none; 8 GiB or three quarters of the
        machine's, whichever is less, if left out.
    soak : int
        Executions of each of a few networks in ``contract/lifecycle/executions-go-on-for-long``,
        which a backend passes unseen without any.
    first : collection of str
        Ids of cases that are tried before others, such as those that failed the last time. Rules
        about the process stay in front, as they watch the backend's first use.
    time_limit_s : float, optional
        The run ends after so many seconds; in this process, with the case that is being judged.

    Returns
    -------
    ConformanceResult
        Of the cases in their order; without those that an early end has left out: the first
        failure, the time limit, or a KeyboardInterrupt. Such a result is not passed.

    Raises
    ------
    BackendUnavailableError
        If the backend cannot be used; a DeviceNotFoundError if its device is missing.
    BackendError
        If its declaration of patterns cannot be read; see `Pattern`.
    InvalidArgumentError
        If no case is selected, or the file of known failures cannot be read; with several
        processes also if the options have a registry, which these do not share.

    Examples
    --------
    >>> from armpy_conformance import run_conformance
    >>> run_conformance("CpuRef", filter="Rank/").is_passed
    True
    """
    subject = BackendUnderTest(backend_id, runtime_options, soak)
    started = time.perf_counter()
    options = runtime_options or RuntimeOptions()
    results: dict[str, CaseResult] = {}
    trial_cases = (
        _CasesHere(subject)
        if jobs is None
        else _CasesElsewhere(subject, options, jobs, memory_bytes)
    )
    with closing(trial_cases) as cases:
        everything = cases.ids()
        chosen = _selected(everything, filter)
        known = {}
        if known_failures is not None:
            known = read_known_failures(os.fspath(known_failures), set(everything))
        earlier = sorted(chosen, key=lambda case: (not case.startswith(_FIRST), case not in first))
        end_s = None if time_limit_s is None else started + time_limit_s
        with suppress(KeyboardInterrupt), closing(cases.judged(earlier, end_s)) as coming:
            for result in coming:
                results[result.case] = result
                if progress is not None:
                    progress(result, len(results), len(chosen))
                if fail_fast and result.outcome.is_bad and result.case not in known:
                    break
    in_order = [results[case] for case in chosen if case in results]
    judged, unused = apply_known_failures(in_order, known)
    backend = subject.backend
    return ConformanceResult(
        backend.get_id(),
        backend.version,
        backend.get_api_version(),
        judged,
        unused,
        time.perf_counter() - started,
        len(chosen),
    )


def _selected(everything: Sequence[str], filter: str | Sequence[str]) -> list[str]:
    """The ids that have one of some texts; raises InvalidArgumentError if none has."""
    chosen = [case for case in everything if is_selected(filter, case)]
    if not chosen:
        raise InvalidArgumentError(
            "no case is selected",
            argument=Argument("filter"),
            actual=repr(filter),
            fix="List the ids of all cases with 'armpy conformance BACKEND --list'",
        )
    return chosen


class _CasesHere:
    """The cases for a backend, judged in this process."""

    def __init__(self, subject: BackendUnderTest) -> None:
        subject.check_availability()
        self._subject = subject
        self._cases = {case.id: case for case in cases_for(subject)}

    def ids(self) -> list[str]:
        """Ids of all cases, in their order."""
        return list(self._cases)

    def judged(
        self, chosen: Sequence[str], end_s: float | None
    ) -> Generator[CaseResult, None, None]:
        for case in chosen:
            yield self._cases[case].judge(self._subject)
            if end_s is not None and time.perf_counter() > end_s:
                return

    def close(self) -> None:
        """Release nothing: the cases stay for later runs."""


class _CasesElsewhere:
    """The cases for a backend, made and judged in other processes.

    Parameters
    ----------
    options : RuntimeOptions
        Without a registry.
    jobs : int
        Number of processes.
    memory_bytes : int or None
        As of `run_conformance`.

    Notes
    -----
    Making all cases takes seconds, so this process makes none: the first worker lists their ids.
    """

    def __init__(
        self,
        subject: BackendUnderTest,
        options: RuntimeOptions,
        jobs: int,
        memory_bytes: int | None,
    ) -> None:
        if options.registry is not None:
            raise InvalidArgumentError(
                "backends of a registry cannot be tried in other processes",
                where="jobs",
                fix="Leave jobs out, or give the folder or distribution that the backend is found "
                "in",
            )
        self._jobs = jobs
        self._backend_id = subject.backend_id
        # Any: a `CaseResult` or `CaseIds`, as asked for
        self._make_judge: Callable[[], Judge[str, Any]] = partial(
            JudgeById, subject.backend_id, options, subject.soak
        )
        if memory_bytes is None:
            memory_bytes = min(_MOST_MEMORY_BYTES, default_memory_bytes())
        self._memory_bytes = memory_bytes
        self._first: JudgingWorker[str] = JudgingWorker(
            self._make_judge, CASE_TIMEOUT_S, memory_bytes
        )

    def ids(self) -> list[str]:
        """Ids of all cases, in their order; raises as `BackendUnderTest.check_availability`."""
        self._first.judge(_OPEN, CaseIds)  # where this ends the process, the cases find it, too
        case_ids: list[str] = []
        while True:
            page = self._first.judge(f"{_LIST}{len(case_ids)}", CaseIds)
            if isinstance(page, LostItem):
                raise BackendError(f"no case can be tried: {page.reason}", where=self._backend_id)
            case_ids += page.ids
            if len(page.ids) < _PAGE:
                return case_ids

    def judged(
        self, chosen: Sequence[str], end_s: float | None
    ) -> Generator[CaseResult, None, None]:
        # Neighbours have samples and sizes in common, which a process then finds once.
        size = max(1, min(_BATCH, -(-len(chosen) // self._jobs)))
        batches = [chosen[i : i + size] for i in range(0, len(chosen), size)]
        judged_results = judge_in_workers(
            batches,
            self._make_judge,
            CaseResult,
            jobs=self._jobs,
            timeout_s=CASE_TIMEOUT_S,
            memory_bytes=self._memory_bytes,
            first=self._first,
            end_s=end_s,
        )
        for result in judged_results:
            yield crashed(result) if isinstance(result, LostItem) else result

    def close(self) -> None:
        """End the first process; the others end with their results."""
        self._first.stop()


def crashed(lost: LostItem[str]) -> CaseResult:
    """The result of a case whose process died or hung."""
    operation = CONTRACT if lost.item.startswith("contract/") else lost.item
    name = operation.partition("/")[0]
    return CaseResult(lost.item, name, "", Outcome.CRASHED, lost.reason)


@dataclass(frozen=True, slots=True)
class CaseIds:
    """Ids of some of the cases for a backend."""

    ids: tuple[str, ...]


class JudgeById:
    """Judges cases by their ids, in a process of its own.

    Parameters
    ----------
    options : RuntimeOptions
        Without a registry.
    soak : int
        As of `run_conformance`.
    """

    def __init__(self, backend_id: BackendId, options: RuntimeOptions, soak: int = 0) -> None:
        self._subject = BackendUnderTest(backend_id, options, soak)
        self._cases = {case.id: case for case in cases_for(self._subject)}

    def __call__(self, item: str) -> CaseResult | CaseIds:
        """Judge the case of an id, open the backend, or list ids from a number on."""
        if item == _OPEN:
            self._subject.check_availability()
            return CaseIds(())
        if item.startswith(_LIST):
            start = int(item.removeprefix(_LIST))
            return CaseIds(tuple(islice(self._cases, start, start + _PAGE)))
        return self._cases[item].judge(self._subject)
