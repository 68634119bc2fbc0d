"""Tests by the line that they reach, measured once in a copy of a tree."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from coverage import CoverageData

from .sites import Site
from .tree import TreeCopy

_COVERAGE = "coverage.db"
_OUTCOMES = "outcomes.xml"
_MEASURE_S = 7200.0
_UNKNOWN_S = 1.0
"""What a test is taken to last whose name pytest writes in another way."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Which tests execute which lines.

    Parameters
    ----------
    by_line : mapping of str to mapping of int to frozenset of str
        Tests that pass, by file and line.
    durations_s : mapping of str to float
        How long each test took.
    """

    by_line: Mapping[str, Mapping[int, frozenset[str]]]
    durations_s: Mapping[str, float]

    @classmethod
    def measured(
        cls, copy: TreeCopy, rooms: Iterable[str], tests: Iterable[str], folder: Path
    ) -> Reached:
        """Run tests with coverage, or read earlier measurements.

        Parameters
        ----------
        copy : TreeCopy
        rooms : iterable of str
            Folders or files of the tree whose lines count.
        tests : iterable of str
            Folders or files of tests.
        folder : Path
            Keeps the measurement.
        """
        outcomes = folder / _OUTCOMES
        if not outcomes.exists():
            folder.mkdir(parents=True, exist_ok=True)
            settings = folder / "coverage.ini"
            source = [f"{room}/*" if (copy.folder / room).is_dir() else room for room in rooms]
            settings.write_text(
                f"[run]\nbranch = False\ninclude = {','.join(source)}\n"
                f"relative_files = True\ndata_file = {folder / _COVERAGE}\n",
                encoding="utf-8",
            )
            how = ("--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=")
            report = (f"--junitxml={outcomes}", "-o", "junit_family=xunit1")
            copy.pytest([*tests, "-n", "2", "-m", "not slow", *how, *report], _MEASURE_S)
        return cls.read(copy.folder, folder)

    @classmethod
    def read(cls, tree: Path, folder: Path) -> Reached:
        """Read the measurements of a tree."""
        data = CoverageData(str(folder / _COVERAGE))
        data.read()
        durations_s, failed = _outcomes(folder / _OUTCOMES)
        by_line: dict[str, dict[int, frozenset[str]]] = {}
        for path in data.measured_files():
            name = str(Path(path).relative_to(tree)) if Path(path).is_absolute() else path
            by_line[name] = {
                line: frozenset(_passed(contexts, failed))
                for line, contexts in data.contexts_by_lineno(path).items()
            }
        return cls(by_line, durations_s)

    def tests_of(self, site: Site, budget_s: float) -> list[str]:
        """Choose the tests that may catch a mutation.

        Parameters
        ----------
        site : Site
        budget_s : float
            How long they may take together, as measured.

        Returns
        -------
        list of str
            Those that execute the changed line; the file, where none does or the line is executed
            by an import; or those that are named like the file, where only processes execute it
            that tests start. First come tests that are most about the file, and one of each test
            function before its other parameters.
        """
        of_file = self.by_line.get(site.module, {})
        reaching: frozenset[str] = frozenset()
        for line in site.lines:
            reaching = reaching or of_file.get(line, frozenset())
        reaching = reaching or frozenset().union(*of_file.values()) or self._named_like(site.module)
        here = Counter(test for tests in of_file.values() for test in tests)
        everywhere = self._lines_of(reaching)
        ranked = sorted(reaching, key=lambda test: (-here[test] / (everywhere[test] or 1), test))
        chosen: list[str] = []
        left_s = budget_s
        for test in _by_turns(ranked):
            left_s -= self.durations_s.get(test, _UNKNOWN_S)
            if left_s < 0 and chosen:
                break
            chosen.append(test)
        return chosen

    def _named_like(self, path: str) -> frozenset[str]:
        """Tests of files whose path shares the most words with that of a file."""
        words = _words(path)
        shared = {test: len(words & _words(test.partition("::")[0])) for test in self.durations_s}
        most = max(shared.values(), default=0)
        return frozenset(test for test, number in shared.items() if most and number == most)

    def _lines_of(self, tests: frozenset[str]) -> Counter[str]:
        """Count the lines that each test executes."""
        lines: Counter[str] = Counter()
        for of_file in self.by_line.values():
            for reaching in of_file.values():
                lines.update(reaching & tests)
        return lines


def _words(path: str) -> frozenset[str]:
    """Words of a file's path, ``core/file_digest.py`` having three."""
    return frozenset(re.split(r"\W|_", path)) - {"", "py", "test"}


def _by_turns(tests: Iterable[str]) -> Iterator[str]:
    """The first parameter of each test function, then the second of each, and so on."""
    by_function: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_function[test.partition("[")[0]].append(test)
    for turn in range(max(map(len, by_function.values()), default=0)):
        yield from (tests[turn] for tests in by_function.values() if turn < len(tests))


def _passed(contexts: Iterable[str], failed: frozenset[str]) -> Iterator[str]:
    """Tests by the contexts of coverage, which are ``"tests/test_a.py::test_b|run"``."""
    for context in contexts:
        test = context.rpartition("|")[0]
        if test and test not in failed:
            yield test


def _outcomes(path: Path) -> tuple[dict[str, float], frozenset[str]]:
    """Durations of tests, and those that failed."""
    durations_s: dict[str, float] = {}
    failed: set[str] = set()
    for case in ET.parse(path).iter("testcase"):
        file, classname = case.get("file", ""), case.get("classname", "")
        module = file.removesuffix(".py").replace("/", ".")
        parts = classname.removeprefix(module).strip(".").split(".")
        test = "::".join(part for part in (file, *parts, case.get("name", "")) if part)
        durations_s[test] = float(case.get("time", "0"))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
    return durations_s, frozenset(failed)
