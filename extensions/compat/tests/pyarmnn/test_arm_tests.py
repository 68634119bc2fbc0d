"""PyArmNN's own tests, run from where they are, with armpy in PyArmNN's place."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from armpy_testing.shared import shared_file

_PLUGIN = "import armpy_compat\n\narmpy_compat.install_as_pyarmnn()\n"

_EXPECTED_FAILURES = {
    # The superuser may write files that are read-only.
    "test_serialize_to_dot_mode_readonly[mock_model]": hasattr(os, "geteuid") and os.geteuid() == 0,
}
"""Tests that fail, and whether they do here."""

_LEAST_TESTS = 345


@pytest.mark.slow
def test_pyarmnns_own_tests_pass(tmp_path: Path) -> None:
    folder = shared_file("armnn_tests", "pyarmnn")
    (tmp_path / "as_pyarmnn.py").write_text(_PLUGIN)
    report = tmp_path / "report.xml"
    options = ["-q", "-p", "as_pyarmnn", "-p", "no:cacheprovider", "-c", "/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", str(folder)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    cases = list(ET.parse(report).iter("testcase"))
    failed = {
        str(case.get("name")): done.stdout
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    assert len(cases) >= _LEAST_TESTS
    assert {*failed} == {name for name, fails in _EXPECTED_FAILURES.items() if fails}, done.stdout
