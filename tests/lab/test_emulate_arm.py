"""The script that emulates Arm runs what it is given, and says what is missing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.shared import shared_files

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab/emulate_arm.py"


def emulate(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_without_debians_tools_it_says_which_is_missing(tmp_path: Path) -> None:
    done = emulate("setup", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 77
    assert "apt-get is not there" in done.stderr


def test_without_an_emulator_it_says_so(tmp_path: Path) -> None:
    home = tmp_path / "armpy-arm64"
    libraries = "root/usr/lib/aarch64-linux-gnu"
    for name in ("root/usr/bin", libraries, "site/numpy", "site/numba", "site/llvmlite"):
        (home / name).mkdir(parents=True)
    (home / "root/usr/bin/python3.11").touch()
    (home / libraries / "libstdc++.so.6").touch()
    done = emulate("python", "-c", "1", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 77
    assert "qemu-aarch64 is not installed" in done.stderr


def test_commands_of_its_own_take_no_other_arguments() -> None:
    assert emulate("setup", "--fast").returncode == 2


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
