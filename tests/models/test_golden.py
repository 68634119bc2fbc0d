"""Every real model gives the outputs that TFLite's reference kernels gave, on every own backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from tests.support.shared import FAMILIES, shared_file, shared_files

GOLDEN = [path for family in FAMILIES for path in shared_files("golden", f"{family}__*.npz")]
BACKENDS = ("NumbaAcc", "CpuRef")
TOLERANCE = {"CpuRef": (1e-5, 0), "NumbaAcc": (2e-5, 1)}
"""Of floats, relative to the largest output, and of integers. NumbaAcc adds floats up in another
order; what it adds quantised may be off by one."""


def cases(golden: Path) -> list[tuple[str, list[Array], list[Array]]]:
    """Name, inputs and outputs of each case of a golden file."""
    with np.load(golden) as data:
        arrays = {key: data[key] for key in data.files if "/" in key}
    names = sorted({key.split("/")[0] for key in arrays})
    return [
        (
            name,
            [arrays[key] for key in sorted(arrays) if key.startswith(f"{name}/in")],
            [arrays[key] for key in sorted(arrays) if key.startswith(f"{name}/out")],
        )
        for name in names
    ]


@pytest.mark.skipif(not GOLDEN, reason="no golden outputs beside the checkout")
def test_there_is_a_golden_file_per_model_family() -> None:
    families = {path.name.split("__")[0] for path in GOLDEN}
    assert families == set(FAMILIES)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_model_agrees_with_its_golden_outputs(golden: Path, backend: str) -> None:
    folder, name = golden.stem.split("__", 1)
    path = shared_file("models", folder, f"{name}.tflite")
    compared = 0
    for case, inputs, expected in cases(golden):
        with armpy.load(path, backends=[backend, "CpuRef"]) as model:
            got = model(*inputs)
            assert model.placement is not None  # known once shapes are
            assert model.placement.layers_by_backend.get(backend, 0) > 0
        outputs = got if isinstance(got, tuple) else (got,)
        assert len(outputs) == len(expected)
        for ours, theirs in zip(outputs, expected, strict=True):
            assert_agree(f"{golden.stem} / {case}", ours, theirs, *TOLERANCE[backend])
            compared += 1
    assert compared


def assert_agree(what: str, ours: Array, theirs: Array, relative: float, steps: int) -> None:
    """Compare dtype, shape, then values: integers by steps, floats relative to the largest."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    if ours.dtype.kind == "f":
        tolerance = relative * np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_allclose(
            ours.astype(np.int64), theirs.astype(np.int64), rtol=0, atol=steps, err_msg=what
        )
