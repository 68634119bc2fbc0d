"""Networks made with Keras, in every kind of numbers, against LiteRT, each in one region.

`lab/benchmarks/keras_variety.py` makes the files, in an environment that has TensorFlow; the
variable ``ARMPY_KERAS_FILES`` names the folder. Where TensorFlow is installed here, a few are made
anew.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from tests.differential.litert_oracle import run_litert

FOLDER = os.environ.get("ARMPY_KERAS_FILES", "")
FILES = sorted(Path(FOLDER).glob("*.tflite")) if FOLDER else []
MADE = ("digits", "gru", "lstm")

TOLERANCE = {"float32": 2e-5, "float16": 2e-5, "dynamic": 0.02, "int8": 0.02, "int16x8": 1e-3}
"""By how much outputs may differ, relative to the largest.

Notes
-----
After 8 bits, the last bit of a sum may move what follows by a step. Where LiteRT's optimised
kernels are farther from its reference kernels, we may be as far.
"""


def inputs_of(model: armpy.Model) -> list[Array]:
    """Numbers of words, or numbers in [-1, 1)."""
    random = np.random.default_rng(3)
    return [
        random.uniform(-1, 1, info.info.known_shape).astype(np.float32)
        if info.data_type is armpy.DataType.FLOAT32
        else random.integers(0, 1000, info.info.known_shape).astype(info.data_type.dtype)
        for info in model.inputs
    ]


def litert_outputs(data: bytes, inputs: list[Array], *, is_reference: bool) -> list[Array]:
    """What LiteRT gives, as float32."""
    outputs = run_litert(data, inputs, reference=is_reference)
    return [np.asarray(output, np.float32) for output in outputs]


def assert_agrees(path: Path) -> None:
    """Compare a file's outputs, and look at where it runs."""
    with armpy.load(path, backends=["NumbaAcc", "CpuRef"]) as model:
        inputs = inputs_of(model)
        got = model(*inputs)
        placement = model.placement
    data, kind = path.read_bytes(), path.stem.rsplit("_", 1)[1]
    outputs = got if isinstance(got, tuple) else (got,)
    others = litert_outputs(data, inputs, is_reference=False)
    try:
        theirs = litert_outputs(data, inputs, is_reference=True)
    except ValueError:  # LiteRT has no reference kernels of some operators, such as ELU
        theirs = others
    for ours, expected, other in zip(outputs, theirs, others, strict=True):
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
        largest, spread = np.abs(expected).max(), np.abs(other - expected).max()
        allowed = max(TOLERANCE[kind] * largest, 2 * spread)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=allowed)
    assert placement is not None
    assert (set(placement.layers_by_backend), placement.num_partitions) == ({"NumbaAcc"}, 1)


@pytest.mark.skipif(not FILES, reason="ARMPY_KERAS_FILES names no folder with .tflite files")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_keras_agree_with_litert_and_run_in_one_region(path: Path) -> None:
    assert_agrees(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few files, made with the TensorFlow that is installed."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    maker = importlib.import_module("lab.benchmarks.keras_variety")
    folder = tmp_path_factory.mktemp("keras")
    for name in MADE:
        maker.make(folder, name, ("float32", "dynamic"))
    return folder


@pytest.mark.parametrize("name", MADE)
def test_networks_made_anew_agree_with_litert(made: Path, name: str) -> None:
    for kind in ("float32", "dynamic"):
        assert_agrees(made / f"{name}_{kind}.tflite")
