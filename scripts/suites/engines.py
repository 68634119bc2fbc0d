"""Suites on one engine each: in processes of their own, started again where a case ends one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 3600
_TEST_TIMEOUT_S = 120
_PLUGIN = Path(__file__).with_name("verdicts.py")

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
    python: str,
    checkout: Path,
    engine: str,
    arguments: list[str],
    environment: dict[str, str],
    sample: int | None = None,
) -> Results:
    """Run a suite of tests that import `onnxruntime`.

    A process that a test ends, or that takes longer for one than `_TEST_TIMEOUT_S`, is started
    again after it.

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
    sample : int, optional
        Run a random sample of so many tests, the same for each engine.
    """
    expanded = [
        path
        for argument in arguments
        for path in (sorted(map(str, checkout.glob(argument))) if "*" in argument else [argument])
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / _PLUGIN.name).symlink_to(_PLUGIN)
        if engine == "armpy":
            (folder / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
        paths = [name, str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
        verdicts = folder / "verdicts.jsonl"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", _PLUGIN.stem]
        command += [f"--verdicts={verdicts}", "--continue-on-collection-errors"]
        command += ["-o", f"faulthandler_timeout={_TEST_TIMEOUT_S}"]
        command += ["-o", "faulthandler_exit_on_timeout=true"]
        command += ["--tb=native"]  # others parse the test's file again for each failure
        command += [] if sample is None else [f"--sample={sample}"]
        num_lines = 0
        while True:
            done = subprocess.run(
                [*command, *expanded],
                cwd=checkout,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
                timeout=_TIMEOUT_S,
                check=False,  # some tests fail with every engine: the file has them
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            lines = verdicts.read_text(encoding="utf-8").splitlines() if verdicts.exists() else []
            if len(lines) == num_lines:
                raise RuntimeError(
                    f"{checkout}: pytest ran no test and ended with {done.returncode}. Expected "
                    f"the suite's tests. Run it alone: {' '.join(command)}\n{done.stdout[-2000:]}"
                )
            num_lines = len(lines)
            if done.returncode in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
                return _read(lines)


def _read(lines: list[str]) -> Results:
    """Read the lines of the plugin `verdicts`; a failure stands, whatever comes after it."""
    results = Results()
    for line in lines:
        document = json.loads(line)
        name, verdict = document["case"], document["verdict"]
        if results.verdicts.get(name) != "failed":
            results.verdicts[name] = verdict
        if document["problem"]:
            results.problems[name] = document["problem"]
    for name, verdict in results.verdicts.items():
        if verdict == "died":
            results.problems[name] = f"the process ended, or took more than {_TEST_TIMEOUT_S} s"
    return results
