"""The conformance cases as tests: ``pytest --pyargs armpy_conformance --armpy-backend ID``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pytest

from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.conformance import (
    CASE_TIMEOUT_S,
    JudgeById,
    NamedCase,
    cases_for,
    crashed,
)
from armpy_conformance.known_failures import read_known_failures
from armpy_conformance.pytest_plugin import PROBLEM, RESULTS
from armpy_conformance.result import CaseResult, Outcome
from armpy_conformance.workers import JudgingWorker, LostItem

_SUBJECT: pytest.StashKey[BackendUnderTest] = pytest.StashKey()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case."""
    cases: list[NamedCase] = []
    try:
        cases += cases_for(_subject(metafunc.config))
    except ArmpyError as error:  # here it would be an error of collection, and not of usage
        metafunc.config.stash[PROBLEM] = str(error)
    metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def _subject(config: pytest.Config) -> BackendUnderTest:
    if _SUBJECT not in config.stash:
        backend_id = config.getoption("armpy_backend")
        if backend_id is None:
            raise InvalidArgumentError("armpy_conformance needs --armpy-backend ID")
        subject = BackendUnderTest(backend_id, _options(config), config.getoption("armpy_soak"))
        list(cases_for(subject))
        config.stash[_SUBJECT] = subject
    return config.stash[_SUBJECT]


def _options(config: pytest.Config) -> RuntimeOptions:
    """The options that find the backend."""
    return RuntimeOptions(dynamic_backends_path=config.getoption("armpy_dynamic_path") or ())


@pytest.fixture(scope="session")
def armpy_subject(pytestconfig: pytest.Config) -> BackendUnderTest:
    """The backend under test."""
    return _subject(pytestconfig)


@pytest.fixture(scope="session")
def armpy_judge(
    pytestconfig: pytest.Config, armpy_subject: BackendUnderTest
) -> Iterator[Callable[[NamedCase], CaseResult]]:
    """Judge a case in a child process, so that one that ends it is a failure with a name."""
    if pytestconfig.getoption("armpy_in_process"):
        yield lambda case: case.judge(armpy_subject)
        return
    make_judge = partial(
        JudgeById, armpy_subject.backend_id, _options(pytestconfig), armpy_subject.soak
    )
    worker: JudgingWorker[str] = JudgingWorker(make_judge, CASE_TIMEOUT_S)

    def judge(case: NamedCase) -> CaseResult:
        result = worker.judge(case.id, CaseResult)
        return crashed(result) if isinstance(result, LostItem) else result

    try:
        yield judge
    finally:
        worker.stop()


@pytest.fixture(scope="session")
def armpy_known_failures(
    pytestconfig: pytest.Config, armpy_subject: BackendUnderTest
) -> Mapping[str, str]:
    """Reasons of known failures by case id."""
    path = pytestconfig.getoption("armpy_known_failures")
    if path is None:
        return {}
    try:
        return read_known_failures(path, {case.id for case in cases_for(armpy_subject)})
    except (ArmpyError, OSError) as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def test_conformance(
    case: NamedCase,
    armpy_subject: BackendUnderTest,
    armpy_judge: Callable[[NamedCase], CaseResult],
    armpy_known_failures: Mapping[str, str],
    pytestconfig: pytest.Config,
) -> None:
    """Judge one case; unsupported is a skip, a known failure is expected to fail."""
    result = armpy_judge(case)
    reason = armpy_known_failures.get(case.id)
    is_known = reason is not None and result.outcome.is_bad
    _note(
        pytestconfig, armpy_subject, replace(result, outcome=Outcome.KNOWN) if is_known else result
    )
    if result.outcome.is_bad:
        if reason is not None:
            pytest.xfail(f"{reason}: {result.text}")
        pytest.fail(f"{result.outcome.value}: {result.text}", pytrace=False)
    if reason is not None:
        pytest.fail(
            f"unused line in the file of known failures: {case.id} is {result.outcome.value}",
            pytrace=False,
        )
    if result.outcome in (Outcome.UNSUPPORTED, Outcome.ELSEWHERE):
        pytest.skip(f"{result.outcome.value}: {result.text}")


def _note(config: pytest.Config, subject: BackendUnderTest, result: CaseResult) -> None:
    """Add a result to those of the session."""
    _, results = config.stash.setdefault(RESULTS, (subject.backend, []))
    results.append(result)
