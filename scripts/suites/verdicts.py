"""Plugin of pytest: records what became of each test, one line of JSON after the other.

A test that ends the process leaves a line that it started. Tests that have a line are not run, so
that pytest with the same file goes on after such a test.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

_SEED = 0
_PROBLEM_CHARACTERS = 600


class Recorder:
    """Writes a line when a test starts, and one with its verdict when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _write(self, name: str, verdict: str, problem: str = "") -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"case": name, "verdict": verdict, "problem": problem}) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Record that a test starts."""
        self._write(nodeid, "died")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the verdict; of preparation and cleaning up only what did not pass."""
        if report.when == "call" or not report.passed:
            self._write(report.nodeid, report.outcome, _problem(report) if report.failed else "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file whose tests cannot be found, for example because an import fails."""
        if report.failed:
            self._write(report.nodeid, "failed", report.longreprtext[-_PROBLEM_CHARACTERS:])


def _problem(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)  # only where an exception ended the test
    if crash is not None:
        return str(crash.message)[:_PROBLEM_CHARACTERS]
    return report.longreprtext[-_PROBLEM_CHARACTERS:]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("verdicts")
    group.addoption("--verdicts", type=Path, required=True, help="the file of lines of JSON")
    group.addoption("--sample", type=int, help="run a fixed random sample of so many tests")


def pytest_configure(config: pytest.Config) -> None:
    """Start recording."""
    config.pluginmanager.register(Recorder(config.getoption("--verdicts")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are not in the sample, and those that have a line already."""
    sample = config.getoption("--sample")
    if sample is not None and sample < len(items):
        items[:] = random.Random(_SEED).sample(items, sample)
    path: Path = config.getoption("--verdicts")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    recorded = {json.loads(line)["case"] for line in lines}
    items[:] = [item for item in items if item.nodeid not in recorded]
