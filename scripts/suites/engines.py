"""Suites on one engine each: in processes of their own, started again where a case ends one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 3600

_SITE = """\
import armpy_compat

armpy_compat.install_as_onnxruntime()
"""
"""Put in place before a suite starts, so that `onnxruntime` is armpy's module."""


@dataclass
class Results:
    """What became of each case of a suite on one engine.

    Parameters
    ----------
    verdicts : dict of str to str
        `passed`, `wrong`, `refused`, `failed`, `skipped` or `died`, by the case's name.
    problems : dict of str to str
        What was wrong, of cases that did not pass.
    """

    verdicts: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[str]:
        """Cases by verdict."""
        return Counter(self.verdicts.values())

    def add(self, name: str, verdict: str, problem: str = "") -> None:
        """Add a case; one whose name is there already gets a number."""
        number = sum(known.partition(" #")[0] == name for known in self.verdicts)
        key = f"{name} #{number + 1}" if number else name
        self.verdicts[key] = verdict
        if problem:
            self.problems[key] = problem


def run_cases(python: str, suite: str, checkout: Path, engine: str) -> Results:
    """Run a suite of single models; a process that a case ends is started again after it."""
    results, first = Results(), 0
    while True:
        command = [python, "-m", "scripts.suites.run_cases", suite, str(checkout), engine]
        done = subprocess.run(
            [*command, str(first)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        open_case = None
        for line in done.stdout.splitlines():
            document = json.loads(line)
            if "case" in document:
                open_case = document
            elif open_case is not None:
                results.add(open_case["name"], document["verdict"], "; ".join(document["problems"]))
                open_case = None
        if done.returncode == 0:
            return results
        if open_case is None:
            raise RuntimeError(
                f"{suite} on {engine}: the process ended with {done.returncode} between two cases. "
                f"Run it alone: {' '.join(command)} {first}"
            )
        results.add(open_case["name"], "died", f"the process ended with {done.returncode}")
        first = open_case["case"] + 1


def run_pytest(
    python: str, checkout: Path, engine: str, arguments: list[str], environment: dict[str, str]
) -> Results:
    """Run a suite of tests that import `onnxruntime`.

    Parameters
    ----------
    python : str
        The interpreter of an environment with the suite's packages, `onnxruntime` and armpy.
    checkout : Path
        The folder in which pytest runs.
    engine : str
        `armpy` puts armpy's module in the place of `onnxruntime`.
    arguments : list of str
        Files, folders and options of pytest; patterns such as `test_*.py` name files.
    environment : dict of str to str
        Environment variables besides the present ones.
    """
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    expanded = [
        path
        for argument in arguments
        for path in (sorted(map(str, checkout.glob(argument))) if "*" in argument else [argument])
    ]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        paths = [str(checkout)]
        if engine == "armpy":
            (Path(folder) / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
            paths.insert(0, folder)
        subprocess.run(
            [*command, f"--junitxml={report}", *expanded],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
            timeout=_TIMEOUT_S,
            check=False,  # some tests fail with every engine: the report has them
            stdout=subprocess.DEVNULL,
        )
        if not report.exists():
            raise RuntimeError(f"{checkout}: pytest wrote no report. Run it alone: {arguments}")
        results = Results()
        for name, verdict, problem in _read(report):
            results.add(name, verdict, problem)
        return results


def _read(report: Path) -> Iterator[tuple[str, str, str]]:
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        faults = [part for part in case if part.tag in {"failure", "error"}]
        if faults:
            yield name, "failed", (faults[0].get("message") or "")[:300]
        elif any(part.tag == "skipped" for part in case):
            yield name, "skipped", ""
        else:
            yield name, "passed", ""
