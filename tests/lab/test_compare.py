"""Two sides run apart; what differs between their answers is reported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy_testing.shared import shared_files
from lab.comparison.answers import FOREIGN_CODE, LOOSE, described, kept_name
from lab.comparison.differences import differences, distances

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "lab" / "compare.py"
PACKAGES = ("armpy", "backends/numba_acc/armpy_numba_acc", "backends/reference/armpy_reference")
OTHER_ROUNDING = """

def round_half_away(values: Any) -> Any:
    return np.rint(values)  # half to even
"""


def copy_of_this_tree(folder: Path) -> Path:
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    return folder


def compare(old: Path | str, new: Path | str, cache: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(old), str(new), "--cache", str(cache), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def answer(**changes: object) -> dict[str, object]:
    return {
        "error": "",
        "outputs": [["float32 (2,) 12"]],
        "placement": ["/a Add [] on X"],
        **changes,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": [["float32 (2,) 13"]]}, "call 0 output 0: float32 (2,) 12 -> float32 (2,) 13"),
        ({"outputs": []}, "1 calls -> 0 calls"),
        ({"outputs": [[]]}, "call 0: 1 outputs -> 0 outputs"),
        ({"placement": ["/a Add [] on Y"]}, "placement: - /a Add [] on X; + /a Add [] on Y"),
        ({"error": "ValueError: no"}, "error: none -> ValueError: no"),
    ],
)
def test_every_difference_is_reported(change: dict[str, object], message: str) -> None:
    assert differences(answer(), answer(**change)) == [message]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(1, np.float32), -np.zeros(1, np.float32)),
        (
            np.array([0x7FC00000], np.uint32).view(np.float32),
            np.array([0x7FC00001], np.uint32).view(np.float32),
        ),
        (np.zeros((1, 2), np.uint8), np.zeros((2, 1), np.uint8)),
        (np.zeros(2, np.uint8), np.zeros(2, np.int8)),
    ],
    ids=["sign of zero", "payload of NaN", "shape", "type"],
)
def test_digests_differ_for_some_equal_values(
    one: np.ndarray[tuple[int, ...]], other: np.ndarray[tuple[int, ...]]
) -> None:
    assert described(one) != described(other)


def test_one_altered_rounding_is_found_and_shown_by_element(tmp_path: Path) -> None:
    altered = copy_of_this_tree(tmp_path / "altered")
    with next(altered.rglob("armpy_reference/quantization.py")).open("a") as file:
        file.write(OTHER_ROUNDING)
    options = ("--only", "kit", "--backend", "CpuRef", "--filter", "kit/Quantize/")
    code, text = compare(ROOT, altered, tmp_path / "cache", *options)
    assert code == 1, text
    assert "DIFFERS kit/Quantize/" in text
    assert "elements, most at" in text
    # What was remembered of the first tree is used, and it is equal to itself.
    code, text = compare(ROOT, ROOT, tmp_path / "cache", *options)
    assert code == 0, text
    assert "no difference" in text
    assert text.count("remembered") == 2


def test_a_process_that_runs_another_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "subjects").write_bytes(b"")
    job = {
        "tree": str(tmp_path),
        "subjects": str(tmp_path / "subjects"),
        "answers": str(tmp_path / "answers"),
        "backend": "CpuRef",
        "num_threads": 1,
        "relaxed": False,
        "root": "",
        "numbers": [],
        "folder": None,
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from comparison.answers import main; main()"],
        input=json.dumps(job),
        env={**os.environ, "PYTHONPATH": str(ROOT / "lab")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == FOREIGN_CODE, done.stderr
    assert "armpy is " in done.stderr


def test_nothing_to_compare_is_an_error(tmp_path: Path) -> None:
    options = ("--only", "kit", "--backend", "CpuRef", "--filter", "no such case")
    code, text = compare(ROOT, ROOT, tmp_path / "cache", *options)
    assert code == 2, text
    assert "there are no kit to compare" in text


@pytest.mark.nightly
def test_what_the_backend_has_no_part_in_proves_nothing(tmp_path: Path) -> None:
    options = ("--only", "kit", "--backend", "CpuRef", "--filter", "kit/Rank/")  # the core's own
    code, text = compare(ROOT, ROOT, tmp_path / "cache", *options)
    assert code == 2, text
    assert "ran no layer of these kit subjects, which proves nothing" in text


@pytest.mark.parametrize(
    ("first", "other", "is_loose", "texts"),
    [
        (np.array([1, 2], np.int8), np.array([1, 2], np.int8), False, []),
        (
            np.array([1, 2], np.int8),
            np.array([1, 3], np.int8),
            False,
            ["output 0: 1 elements differ, by up to 1"],
        ),
        (np.array([1, 2], np.int8), np.array([1, 3], np.int8), True, []),
        (
            np.array([1, 2], np.int8),
            np.array([1, 4], np.int8),
            True,
            ["output 0: 1 elements differ, by up to 2"],
        ),
        (
            np.array([1, 2], np.int16),
            np.array([1, 2], np.int8),
            True,
            ["output 0: int16 (2,) -> int8 (2,)"],
        ),
        (
            np.array([0.0], np.float32),
            np.array([-0.0], np.float32),
            False,
            ["output 0: 1 elements differ, by up to 0"],
        ),
        (np.array([np.nan, 1], np.float32), np.array([-np.nan, 1], np.float32), False, []),
        (np.array([0, 100], np.float32), np.array([0.0005, 100], np.float32), True, []),
        (
            np.array([0, 100], np.float32),
            np.array([0.5, 100], np.float32),
            True,
            ["output 0: 1 elements differ, by up to 0.5"],
        ),
        (
            np.array([1, 2], np.float32),
            np.array([1, np.nan], np.float32),
            True,
            ["output 0: 1 elements differ, by up to nan"],
        ),
    ],
)
def test_other_backends_and_systems_may_differ_by_what_rounding_moves(
    first: Any, other: Any, is_loose: bool, texts: list[str], tmp_path: Path
) -> None:
    folders = tmp_path / "old", tmp_path / "new"
    for folder, array in zip(folders, (first, other), strict=True):
        folder.mkdir()
        np.savez(folder / kept_name("x"), **{"output 0": array, LOOSE: np.array([is_loose])})
    assert distances("x", answer(), answer(), folders, 1e-5) == texts


SMALL = [
    *shared_files("models", "micro/*int8.tflite"),
    *shared_files("models", "micro/keyword_scrambled.tflite"),
    *shared_files("models", "mlperf_tiny/*int*.tflite"),
    *shared_files("models", "mlperf_tiny/pretrainedResnet_quant.tflite"),
]


def test_numbaacc_equals_cpuref_in_every_element_of_small_models(tmp_path: Path) -> None:
    models = ("--only", "models", "--models", *map(str, SMALL))
    for threads in (1, 2):
        sides = f"{ROOT},backend=CpuRef", f"{ROOT},backend=NumbaAcc,threads={threads}"
        code, text = compare(*sides, tmp_path / "cache", *models)
        assert code == 0, text
        assert f"{len(SMALL)} of {len(SMALL)} alike" in text
