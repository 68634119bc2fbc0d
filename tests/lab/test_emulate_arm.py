"""The script that emulates Arm runs what it is given, and says what is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.shared import shared_files

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab/emulate_arm.py"


@pytest.mark.slow
def test_the_nightly_selection_has_every_family_and_the_real_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    script = importlib.import_module("emulate_arm")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-k"]
    command += [script.CHOSEN, *script.NIGHTLY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    chosen = done.stdout.splitlines()
    assert any("test_families.py" in line and "svdf, bytes" in line for line in chosen)
    models = [line for line in chosen if "test_golden.py" in line]
    assert all("NumbaAcc" in line for line in models)
    for folder in ("micro", "mlperf_tiny", "coral"):
        golden = shared_files("golden", f"{folder}__*.npz")
        assert sum(f"[{folder}__" in line for line in models) == len(golden)
