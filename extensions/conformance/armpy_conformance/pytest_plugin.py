"""Options of the conformance kit for pytest; found through the entry point ``pytest11``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from armpy.backend import IBackendInternal
    from armpy_conformance.result import CaseResult, ConformanceResult

RESULTS: pytest.StashKey[tuple[IBackendInternal, list[CaseResult]]] = pytest.StashKey()
"""Where the cases of a session leave their backend and their results so far."""

PROBLEM: pytest.StashKey[str] = pytest.StashKey()
"""Where a session whose options cannot be followed says why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``pytest --pyargs armpy_conformance``."""
    group = parser.getgroup("armpy", "conformance of an armpy backend")
    group.addoption(
        "--armpy-backend", metavar="ID", help="Id of the backend that armpy_conformance is run on."
    )
    group.addoption(
        "--armpy-known-failures",
        metavar="FILE",
        help="Cases that may fail, one 'case id  # reason' per line; those that pass fail the run.",
    )
    group.addoption(
        "--armpy-dynamic-path",
        metavar="DIR",
        help="Directory with modules named <vendor>_<name>_backend.",
    )
    group.addoption(
        "--armpy-soak",
        type=int,
        default=0,
        metavar="N",
        help="Execute a few networks N times each, as armpy conformance --soak does.",
    )
    group.addoption(
        "--armpy-in-process",
        action="store_true",
        help="Run the cases in pytest's own process, for debuggers and coverage.",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """End a session whose options cannot be followed, before anything is run.

    Raises
    ------
    pytest.UsageError
        Names the problem.
    """
    if PROBLEM in session.config.stash:
        raise pytest.UsageError(session.config.stash[PROBLEM])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session whose cases prove nothing about the backend."""
    result = _result(session.config)
    if result is not None and result.shortcomings and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report how many layers ran on the backend, and its claims that were not shown."""
    result = _result(config)
    if result is not None:
        for line in (*result.shortcomings, result.coverage):
            terminalreporter.write_line(line)


def _result(config: pytest.Config) -> ConformanceResult | None:
    """Return the result of a session's cases; None if it has none."""
    if RESULTS not in config.stash:
        return None
    # Every run of pytest loads this, and few have cases.
    from armpy_conformance.result import ConformanceResult  # noqa: PLC0415

    backend, results = config.stash[RESULTS]
    version = backend.version, backend.get_api_version()
    return ConformanceResult(backend.get_id(), *version, tuple(results))
