"""Programs in `lab/` as a command line starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.structure import ROOT

PROGRAMS = sorted(
    path for path in (ROOT / "lab").glob("*.py") if '"__main__"' in path.read_text("utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_answers_a_request_for_help(program: Path) -> None:
    answer = subprocess.run(
        [sys.executable, program, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "ModuleNotFoundError" in answer.stderr:
        pytest.skip(answer.stderr.splitlines()[-1])
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("usage: " + program.name)
