"""Slow tests are left to the runs that ask for them, and .ci/run is one of these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_A_SLOW_FILE = "tests/scripts/test_mutate.py::"
SLOW_FUNCTION = "tests/scripts/test_structure.py::test_this_tree_is_at_its_ceilings"
SAMPLED = "tests/scripts/test_tiers.py::test_all_tests_are_run_where_a_variable_asks_for_them"
QUICK = "tests/scripts/test_tiers.py::test_ci_runs_slow_tests"


def collected(*arguments: str, **variables: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_TESTS")} | variables
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *arguments]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


def test_folders_are_run_without_slow_tests() -> None:
    listed = collected("tests/scripts")
    assert QUICK in listed
    assert OF_A_SLOW_FILE not in listed
    assert SLOW_FUNCTION not in listed
    assert "files of slow tests, which ARMPY_SLOW_TESTS=1 runs" in listed
    assert "deselected" in listed
    assert f"{SAMPLED}[ARMPY_SLOW_TESTS]" in listed
    assert f"{SAMPLED}[ARMPY_FULL_TESTS]" not in listed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variable", ["ARMPY_SLOW_TESTS", "ARMPY_FULL_TESTS"])
def test_all_tests_are_run_where_a_variable_asks_for_them(variable: str) -> None:
    listed = collected("tests/scripts", **{variable: "1"})
    assert all(name in listed for name in (QUICK, OF_A_SLOW_FILE, SLOW_FUNCTION))
    assert f"{SAMPLED}[ARMPY_FULL_TESTS]" in listed


def test_slow_tests_that_are_named_are_run() -> None:
    assert SLOW_FUNCTION in collected("tests/scripts/test_structure.py")
    listed = collected("tests/scripts", "-m", "slow")
    assert OF_A_SLOW_FILE in listed
    assert SLOW_FUNCTION in listed
    assert f"{SAMPLED}[ARMPY_FULL_TESTS]" in listed
    assert f"{SAMPLED}[ARMPY_SLOW_TESTS]" not in listed
    assert QUICK not in listed


def test_ci_runs_slow_tests() -> None:
    assert "\nexport ARMPY_SLOW_TESTS=1\n" in (ROOT / ".ci" / "run").read_text("utf-8")
