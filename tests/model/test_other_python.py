"""Prepared models give the same, bit for bit, in a Python without compilers and parsers."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.shared import shared_file
from lab.comparison.prepared import compare, make_packages

pytest.importorskip("numba", reason="Numba is not installed")

MOST_MODULES = 52
MODELS = [
    ("mlperf_tiny", "ad01_int8.tflite"),
    ("keras_more", "text_gru_float32.tflite"),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_packages(tmp_path_factory.mktemp("other") / "packages")


@pytest.mark.slow
@pytest.mark.parametrize("parts", MODELS, ids="/".join)
def test_outputs_are_equal_and_little_is_imported(
    parts: tuple[str, str], packages: Path, tmp_path: Path
) -> None:
    outcome = compare(shared_file("models", *parts), packages, tmp_path)
    assert outcome.is_equal, outcome.reason
    assert outcome.is_light, outcome.reason
    assert outcome.num_modules < MOST_MODULES
