"""Compiled models whose quick record says of itself what is not so."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import ParserError
from armpy_testing.digits import MODEL as DIGITS
from tests.support.prepared_layouts import newest_layout, read_plainly

LIMIT_BYTES = 1 << 20


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A compiled model."""
    path = tmp_path / "digits.armpy"
    with armpy.load(shutil.copy(DIGITS, tmp_path / "digits.tflite")) as model:
        model.save(path)
    return path


def test_results_count_against_the_limit_whatever_the_file_says_it_needs(saved: Path) -> None:
    file = read_plainly(saved.read_bytes())
    manifest = file.manifest
    shape = [1, 2 * LIMIT_BYTES]
    manifest["quick"]["results"][0][0] = shape
    manifest["quick"]["needed_bytes"] = 0
    for program in manifest["programs"]:
        program["shapes"] = [shape]
    saved.write_bytes(newest_layout(file.sections, manifest))
    with armpy.load(saved, memory_limit_bytes=LIMIT_BYTES) as model:
        (spec,) = model.inputs
        image = np.zeros([size or 1 for size in spec.shape or ()], np.int8)
        (output,) = model.run({spec.name: image}).values()
        assert not model.is_light
        assert output.nbytes < LIMIT_BYTES


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "names",
    [{"inputs": ["a", "b"]}, {"inputs": ["a"], "outputs": [1]}, {"inputs": []}, {"outputs": "y"}],
    ids=["too many", "a number", "too few", "a text"],
)
def test_names_of_a_signature_that_cannot_be_are_refused(
    saved: Path, names: dict[str, object]
) -> None:
    file = read_plainly(saved.read_bytes())
    manifest = file.manifest
    manifest["signatures"][1] |= names
    saved.write_bytes(newest_layout(file.sections, manifest))
    with pytest.raises(ParserError, match=r"names of a signature|cannot be read"):
        armpy.load(saved, signature="serving_default")
    with (
        pytest.raises(ParserError, match=r"names of a signature|cannot be read"),
        armpy.load(saved) as model,
    ):
        model.signature("serving_default")


@pytest.mark.parametrize("kept", [{"CpuRef": [[0]]}, {"CpuRef": [{}]}, {"CpuRef": "0"}, [0]])
def test_layers_left_to_backends_that_are_no_numbers_are_refused(saved: Path, kept: object) -> None:
    file = read_plainly(saved.read_bytes())
    saved.write_bytes(newest_layout(file.sections, file.manifest | {"kept": kept}))
    with pytest.raises(ParserError, match="what backends have left as it is cannot be read"):
        armpy.load(saved, on_fallback="warn")
