"""The script that runs tests on Windows' Python fails with them, and says what is missing."""

from __future__ import annotations

import importlib
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
