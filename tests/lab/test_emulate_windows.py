"""The script that runs tests on Windows' Python fails with them, and says what is missing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab/emulate_windows.py"

CASES = {
    "pass": '<testcase classname="tests.a" name="test_b"/>',
    "skip": '<testcase classname="tests.a" name="test_s"><skipped message="no fork"/></testcase>',
    "fail": '<testcase classname="tests.a" name="test_c"><failure message="1 != 2"/></testcase>',
    "error": '<testcase classname="tests.a" name="test_d"><error message="setup"/></testcase>',
}


def test_without_debians_tools_it_says_which_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "setup"]
    variables = {**os.environ, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 77
    assert "Windows cannot be emulated here: " in done.stderr


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("emulate_windows")


@pytest.mark.parametrize(
    ("cases", "pytest_status", "status", "message"),
    [
        (["pass", "skip"], 0, 0, "skipped: 1 times: no fork\n1 passed, 1 skipped\n"),
        (["pass", "fail"], 1, 1, "failed: tests/a: tests.a.test_c\n1 failed, 1 passed\n"),
        (["pass", "error"], 1, 1, "failed: tests/a: tests.a.test_d\n1 failed, 1 passed\n"),
        (["pass"], 3, 1, "failed: tests/a: ended with status 3\n1 passed\n"),
        (None, 124, 1, "failed: tests/a: ended with status 124\n\n"),
        ([], 5, 1, "\n"),  # a selection without a test shows nothing
    ],
)
def test_a_nightly_run_fails_with_its_tests_and_without_a_report(
    cases: Sequence[str] | None,
    pytest_status: int,
    status: int,
    message: str,
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    windows = script.Windows(tmp_path)
    windows.system.mkdir()

    def run(*_: Any) -> int:  # Any: what the script passes is not looked at
        if cases is not None:
            text = "".join(CASES[name] for name in cases)
            (windows.system / script._REPORT).write_text(f"<testsuite>{text}</testsuite>", "utf-8")
        return pytest_status

    monkeypatch.setattr(script, "_run", run)
    assert script._nightly(windows, ["tests/a"], 1.0) == status
    assert capsys.readouterr().out == f"== tests/a\n{message}"


def test_the_nightly_folders_are_there(script: ModuleType) -> None:
    assert {name for name in script.NIGHTLY if not (ROOT / name).is_dir()} == set()


@pytest.mark.parametrize(
    "variable", ["ARMPY_TESTS_KEPT", "HYPOTHESIS_STORAGE_DIRECTORY", "PYTHONPYCACHEPREFIX"]
)
def test_programs_keep_their_files_outside_of_the_read_only_checkout(
    variable: str, script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:  # Any: as above
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert script._run(script.Windows(tmp_path), ["-c", "1"]) == 0
    assert [word for word in commands[0] if word.startswith(f"{variable}=Z:\\cache\\")]


def test_nothing_stays_mounted(script: ModuleType, tmp_path: Path) -> None:
    command = script.Windows(tmp_path).command(["-c", "1"], {"ARMPY_KERNELS": "off"})
    assert command[:4] == ["unshare", "--mount", "--propagation", "private"]
    assert "ARMPY_KERNELS=off" in command
