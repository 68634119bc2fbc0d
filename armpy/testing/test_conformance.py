"""The conformance cases as tests: ``pytest --pyargs armpy.testing --armpy-backend ID``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from armpy.errors import ArmpyError
from armpy.runtime import RuntimeOptions
from armpy.testing.conformance import NamedCase, all_cases
from armpy.testing.known_failures import read_known_failures
from armpy.testing.result import Outcome
from armpy.testing.subject import Subject


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case."""
    cases = list(all_cases())
    metafunc.parametrize("case", cases, ids=[case.id for case in cases])


@pytest.fixture(scope="session")
def armpy_subject(pytestconfig: pytest.Config) -> Subject:
    """The backend under test."""
    backend_id = pytestconfig.getoption("armpy_backend")
    if backend_id is None:
        pytest.exit(
            "armpy.testing needs --armpy-backend ID", returncode=pytest.ExitCode.USAGE_ERROR
        )
    path = pytestconfig.getoption("armpy_dynamic_path")
    try:
        return Subject(backend_id, RuntimeOptions(dynamic_backends_path=path or ()))
    except ArmpyError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def armpy_known_failures(pytestconfig: pytest.Config) -> Mapping[str, str]:
    """Reasons of known failures by case id."""
    path = pytestconfig.getoption("armpy_known_failures")
    if path is None:
        return {}
    try:
        return read_known_failures(path, {case.id for case in all_cases()})
    except (ArmpyError, OSError) as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def test_conformance(
    case: NamedCase, armpy_subject: Subject, armpy_known_failures: Mapping[str, str]
) -> None:
    """Judge one case; unsupported is a skip, a known failure is expected to fail."""
    result = case.judge(armpy_subject)
    reason = armpy_known_failures.get(case.id)
    if result.outcome.is_bad:
        if reason is not None:
            pytest.xfail(f"{reason}: {result.text}")
        pytest.fail(f"{result.outcome.value}: {result.text}", pytrace=False)
    if reason is not None:
        pytest.fail(
            f"unused line in the file of known failures: {case.id} is {result.outcome.value}",
            pytrace=False,
        )
    if result.outcome is Outcome.UNSUPPORTED:
        pytest.skip(result.text)
