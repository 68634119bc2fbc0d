"""``pytest --pyargs armpy_conformance --armpy-backend ID`` in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.checkout import checkout_path

pytestmark = pytest.mark.slow

EXAMPLES = checkout_path("backends", "dynamic_examples")


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the kit outside of the checkout; exit code and output."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "armpy_conformance", "-q", "-rA"]
    done = subprocess.run(
        [*command, "-W", "error", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def liar(tmp_path: Path) -> str:
    """A directory with a backend whose sums are wrong."""
    folder = tmp_path / "liar"
    folder.mkdir()
    shutil.copy(EXAMPLES / "broken" / "Broken_WrongResults_backend.py", folder)
    shutil.copytree(EXAMPLES / "broken" / "Broken_common", folder / "Broken_common")
    return str(folder)


ADDITION = ("-k", "by-hand-arm-nn-sample")
ADDITION_ID = "ElementwiseBinary/by-hand-arm-nn-sample/float32"


def test_a_backend_in_a_directory_can_be_named(tmp_path: Path) -> None:
    code, text = run_pytest(
        tmp_path,
        "--armpy-backend=SampleDynamic",
        f"--armpy-dynamic-path={EXAMPLES / 'single_file'}",
        "-k",
        "by-hand and (arm-nn-sample or sub)",  # the sample with and without elements
    )
    assert code == 0, text
    assert "2 passed, 1 skipped" in text
    assert "ElementwiseBinary is not a plain addition (operation)" in text
    assert "layers run on SampleDynamic: 2; of its claims, 100 % ran on it" in text


def test_a_session_in_which_no_layer_ran_fails(tmp_path: Path) -> None:
    code, text = run_pytest(
        tmp_path,
        "--armpy-backend=SampleDynamic",
        f"--armpy-dynamic-path={EXAMPLES / 'single_file'}",
        *("-k", "Shape/ or Prelu"),
    )
    assert code == 1, text
    assert "no layer ran on SampleDynamic: this proves nothing about it" in text


def test_a_wrong_backend_fails_and_the_operation_is_named(tmp_path: Path, liar: str) -> None:
    code, text = run_pytest(
        tmp_path, "--armpy-backend=BrokenWrongResults", f"--armpy-dynamic-path={liar}", *ADDITION
    )
    assert code == 1, text
    assert "BrokenWrongResults / ElementwiseBinary()" in text
    assert "Expected 15" in text


def test_a_known_failure_is_expected_to_fail(tmp_path: Path, liar: str) -> None:
    known = tmp_path / "known.txt"
    known.write_text(f"{ADDITION_ID}  # it subtracts\n", "utf-8")
    options = (f"--armpy-known-failures={known}", f"--armpy-dynamic-path={liar}", *ADDITION)
    code, text = run_pytest(tmp_path, "--armpy-backend=BrokenWrongResults", *options)
    assert code == 0, text
    assert "1 xfailed" in text
    code, text = run_pytest(tmp_path, "--armpy-backend=CpuRef", *options)
    assert code == 1, text
    assert "unused line in the file of known failures" in text


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "armpy_conformance needs --armpy-backend ID"),
        (("--armpy-backend=Missing",), "there is no backend 'Missing'"),
    ],
)
def test_options_that_cannot_be_followed_are_usage_errors(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    code, text = run_pytest(tmp_path, *arguments, *ADDITION)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert complaint in text
