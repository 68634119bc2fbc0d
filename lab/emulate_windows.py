"""Runs armpy on Windows' Python under Wine.

Usage::

    python lab/emulate_windows.py setup
    python lab/emulate_windows.py python ARGUMENTS...
    python lab/emulate_windows.py pytest ARGUMENTS...
    python lab/emulate_windows.py nightly [--seconds N] [ARGUMENTS...]

``setup`` makes the environment, once: Debian with Wine, Python for Windows and wheels for it, about
3 GB in the folder for caches. The others make it if it is not there. ``python`` runs its
interpreter in this checkout, which is ``Z:/armpy`` there. ``pytest`` runs tests of this checkout.

``nightly`` runs the default tests of the folders NIGHTLY, each in a process of its own of at most N
seconds, and lists failures and the reasons of skips. A folder whose process ends without a report,
or not in time, fails. ARGUMENTS are folders or files to run instead.

Needs Linux on x86-64 with root's rights and, for ``setup``, a network. What is missing is said,
with exit status 77.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from emulation.environment import MissingError
from emulation.windows import Windows, default_windows, set_up

MISSING = 77
"""None of pytest's own exit statuses."""

NIGHTLY = (
    *("tests/backend", "tests/core", "tests/execution", "tests/frontends", "tests/graph"),
    *("tests/inspect", "tests/model", "tests/ops", "tests/plugins", "tests/profiling"),
    *("tests/store", "backends/reference/tests", "extensions/mediapipe/tests"),
)
"""Folders whose default tests pass there."""

SECONDS = 3600
"""Most that one folder of tests takes."""

_REPORT = f"report-{os.getpid()}.xml"
_NO_TESTS = 5
"""Pytest's exit status where a file has no default tests."""

_CACHES = {
    "ARMPY_TESTS_KEPT": "Z:\\cache\\kept",
    "PYTHONPYCACHEPREFIX": "Z:\\cache\\python",
    # In a read-only folder, Python on Windows looks for a free temporary name without end.
    "HYPOTHESIS_STORAGE_DIRECTORY": "Z:\\cache\\hypothesis",
}
"""Where programs keep files, as the checkout is read-only."""

_SETTINGS = (
    *("-m", "pytest", "-c", "pyproject.toml", "--rootdir", "."),
    # One process and a read-only checkout.
    *("--override-ini", "addopts=-ra --strict-markers --strict-config --import-mode=importlib"),
    *("-p", "no:cacheprovider", "--continue-on-collection-errors"),
)


def main() -> int:
    """Carry out the command line's request; return the exit status."""
    options = _options()
    windows = default_windows()
    try:
        set_up(windows)
    except MissingError as error:
        print(f"Windows cannot be emulated here: {error}", file=sys.stderr)
        return MISSING
    if options.command == "setup":
        print(f"Windows' Python is in {windows.python}")
        return 0
    if options.command == "python":
        return _run(windows, options.arguments)
    if options.command == "pytest":
        return _run(windows, [*_SETTINGS, *options.arguments])
    return _nightly(windows, options.arguments or NIGHTLY, options.seconds)


def _run(windows: Windows, arguments: Sequence[str], seconds: float | None = None) -> int:
    """Run Windows' Python; return its exit status, or that of `timeout` if it was ended."""
    variables = {name: os.environ[name] for name in os.environ if name.startswith("ARMPY_")}
    variables |= _CACHES
    command = windows.command(arguments, variables)
    if seconds is not None:
        command = ["timeout", "--kill-after=5", str(seconds), *command]
    return subprocess.run(command, check=False).returncode


def _nightly(windows: Windows, places: Sequence[str], seconds: float) -> int:
    """Run the default tests of files and folders; 1 if one fails."""
    outcomes: Counter[str] = Counter()
    skips: Counter[str] = Counter()
    failures: list[str] = []
    report = windows.system / _REPORT
    for place in places:
        print(f"== {place}", flush=True)
        report.unlink(missing_ok=True)
        arguments = ["-q", "--no-header", "--tb=short", "-m", "not slow", place]
        status = _run(windows, [*_SETTINGS, f"--junit-xml=Z:\\{_REPORT}", *arguments], seconds)
        if report.exists():
            for outcome, text in _cases(report):
                outcomes[outcome] += 1
                if outcome == "skipped":
                    skips[text] += 1
                if outcome == "failed":
                    failures.append(f"{place}: {text}")
        if not report.exists() or status not in (0, 1, _NO_TESTS):
            failures.append(f"{place}: ended with status {status}")
    report.unlink(missing_ok=True)
    for reason, count in sorted(skips.items()):
        print(f"skipped: {count} times: {reason}")
    for failure in failures:
        print(f"failed: {failure}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(bool(failures) or not outcomes["passed"])


def _cases(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the outcome of each test of a report, with its reason or, of a failure, its name."""
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            yield "skipped", skipped.get("message", "")
        elif case.find("failure") is not None or case.find("error") is not None:
            yield "failed", f"{case.get('classname')}.{case.get('name')}"
        else:
            yield "passed", ""


def _options() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup")
    commands.add_parser("python")
    commands.add_parser("pytest")
    nightly = commands.add_parser("nightly")
    nightly.add_argument("--seconds", type=float, default=SECONDS)
    known, arguments = parser.parse_known_args()
    if arguments and known.command == "setup":
        parser.error(f"unrecognized arguments: {' '.join(arguments)}")
    known.arguments = arguments
    return known


if __name__ == "__main__":
    sys.exit(main())
