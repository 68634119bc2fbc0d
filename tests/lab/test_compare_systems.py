"""Answers of two systems are compared: integers bit for bit, floats within a tolerance."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy_testing.digits import MODEL

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "lab" / "compare_systems.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("compare_systems")


def save(path: Path, array: Any) -> None:
    np.savez(path, **{"0/0": array})


@pytest.mark.parametrize(
    ("first", "other", "distance", "errors"),
    [
        (np.array([1, 2], np.int8), np.array([1, 2], np.int8), 0.0, []),
        (np.array([1, 2], np.int8), np.array([1, 3], np.int8), 0.0, ["0/0: 1 integers differ"]),
        (
            np.array([1, 2], np.int16),
            np.array([1, 2], np.int8),
            0.0,
            ["0/0: int8(2,) instead of int16(2,)"],
        ),
        (np.array([0, 100], np.float32), np.array([0.0005, 100], np.float32), 5e-6, []),
        (
            np.array([0, 100], np.float32),
            np.array([0.5, 100], np.float32),
            5e-3,
            ["0/0: floats differ by 0.005"],
        ),
        (np.array([0, np.nan], np.float32), np.array([0, np.nan], np.float32), 0.0, []),
    ],
)
def test_what_differs_is_found(
    script: Any, first: Any, other: Any, distance: float, errors: list[str], tmp_path: Path
) -> None:
    save(tmp_path / "first.npz", first)
    save(tmp_path / "other.npz", other)
    found = script.differences(tmp_path / "first.npz", tmp_path / "other.npz")
    assert found == (pytest.approx(distance, rel=1e-3), errors)


def test_one_nan_is_an_error(script: Any, tmp_path: Path) -> None:
    save(tmp_path / "first.npz", np.array([1, 2], np.float32))
    save(tmp_path / "other.npz", np.array([1, np.nan], np.float32))
    _, errors = script.differences(tmp_path / "first.npz", tmp_path / "other.npz")
    assert errors == ["0/0: floats differ by nan"]


@pytest.mark.slow
def test_a_system_equals_itself_and_a_broken_one_is_told(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(MODEL), "--backend", "CpuRef"]
    command += ["--called", str(tmp_path), "--rounds", "1", "--seconds", "0.01"]
    same = subprocess.run(
        [*command, "--python", sys.executable], capture_output=True, text=True, check=False
    )
    assert same.returncode == 0, same.stdout + same.stderr
    assert "CpuRef: 1 of 1 equal" in same.stdout
    broken = subprocess.run(
        [*command, "--python", "false"], capture_output=True, text=True, check=False
    )
    assert broken.returncode == 1
    assert "other: the process ended with 1" in broken.stdout
