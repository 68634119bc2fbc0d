"""Slow and nightly tests are left to the runs that ask for them: .ci/run and .ci/full."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = "tests/lab"
FILE = f"{FOLDER}/test_tiers.py::"
OF_A_SLOW_FILE = f"{FOLDER}/test_build_kernels.py::"
QUICK = f"{FILE}test_ci_runs_all_slow_tests"
SLOW = f"{FILE}test_all_tests_are_run_where_a_variable_asks_for_them"
NIGHTLY = f"{FOLDER}/test_compare.py::test_what_the_backend_has_no_part_in_proves_nothing"
FIRST, SECOND, THIRD = (f"{FILE}test_a_sample[{number}]" for number in (1, 2, 3))
SLOW_FIRST, SLOW_SECOND = (f"{FILE}test_a_slow_sample[{number}]" for number in (1, 2))

WITH_TESTS = {
    *("PIL", "click", "cryptography", "flatbuffers", "jinja2", "ml_dtypes", "numba", "onnx"),
    *("prometheus_client", "re2", "tflite"),
}
"""What tests skip without that every run has: of the extra 'test' and of extensions."""

ENGINES = {"ai_edge_litert", "onnxruntime", "openvino", "tokenizers"}
"""Of the extra 'bench', with which .ci/run runs all that needs them."""

IN_FULL = {"axe_playwright_python", "build", "playwright", "sphinx"}
"""Of the extras 'browser', 'docs' and 'release', which .ci/full installs as well."""

BY_HAND = {"atheris", "onnxscript", "opentelemetry", "torch"}
"""What tests skip without that no run of all tests installs.

PyTorch and onnxscript are in a run of `.ci/servers`, which has the tests of armpy-torch.
"""


def collected(*arguments: str, **variables: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "ARMPY_TEST_EFFORT"} | variables
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *arguments]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_sample(number: int) -> None:
    assert number in (1, 2, 3)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [1, 2])
def test_a_slow_sample(number: int) -> None:
    assert number in (1, 2)


@pytest.mark.slow
def test_folders_are_run_without_slow_tests() -> None:
    listed = collected(FOLDER)
    assert QUICK in listed
    assert FIRST in listed
    others = SLOW, SECOND, THIRD, SLOW_FIRST, SLOW_SECOND, NIGHTLY, OF_A_SLOW_FILE
    assert not [name for name in others if name in listed]
    assert "files of slow tests, which ARMPY_TEST_EFFORT=1 runs" in listed
    assert "deselected" in listed


@pytest.mark.slow
@pytest.mark.parametrize("effort", [1, 2])
def test_all_tests_are_run_where_a_variable_asks_for_them(effort: int) -> None:
    listed = collected(FOLDER, ARMPY_TEST_EFFORT=str(effort))
    expected = QUICK, FIRST, SLOW, SLOW_FIRST, OF_A_SLOW_FILE
    assert all(name in listed for name in expected)
    in_full = NIGHTLY in listed, SECOND in listed, THIRD in listed, SLOW_SECOND in listed
    assert in_full == (effort == 2,) * 4


@pytest.mark.slow
def test_slow_tests_that_are_named_are_run() -> None:
    listed = collected(FILE.rstrip(":"))
    assert all(name in listed for name in (QUICK, FIRST, SECOND, THIRD, SLOW))
    listed = collected(FOLDER, "-m", "slow")
    assert all(name in listed for name in (SLOW, OF_A_SLOW_FILE))
    assert not [name for name in (QUICK, FIRST, SECOND, THIRD, NIGHTLY) if name in listed]


def test_ci_runs_all_slow_tests() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "\nARMPY_TEST_EFFORT=1 .venv/bin/python -m pytest -q -m slow --durations=25\n" in text


def test_a_run_has_the_packages_without_which_tests_are_skipped() -> None:
    runs = {name: (ROOT / ".ci" / name).read_text("utf-8") for name in ("full", "servers")}
    elsewhere = re.findall(r"\b(?:tests|extensions|backends)/\S+", "\n".join(runs.values()))
    for path in (ROOT / part for part in ("tests", "extensions", "backends")):
        for test in path.rglob("test_*.py"):
            skips = re.findall(r'importorskip\("(\w+)', test.read_text("utf-8"))
            missing = {*skips} - WITH_TESTS - ENGINES - IN_FULL - BY_HAND - sys.stdlib_module_names
            missing = {name for name in missing if not name.startswith(("armpy_", "lab"))}
            is_named = any(test.is_relative_to(ROOT / part) for part in elsewhere)
            assert is_named or not missing, f"no run of {test} installs {missing}"
