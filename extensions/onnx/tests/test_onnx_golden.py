"""Trained ONNX models give what ONNX Runtime gave without optimisations, call after call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from armpy_testing.shared import shared_file, shared_files

GOLDEN = shared_files("golden", "onnx__*.npz")
BACKENDS = (("CpuRef",), ("NumbaAcc", "CpuRef"))


def cases(golden: Path) -> Iterator[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of each case, in order."""
    with np.load(golden) as data:
        arrays = {key: data[key] for key in data.files if "/" in key}
    for case in sorted({key.split("/")[0] for key in arrays}, key=lambda name: (len(name), name)):
        array_lists: list[list[Array]] = []
        for kind in ("in", "out"):
            count = sum(key.startswith(f"{case}/{kind}") for key in arrays)
            array_lists.append([arrays[f"{case}/{kind}{index}"] for index in range(count)])
        yield array_lists[0], array_lists[1]


@pytest.mark.slow
@pytest.mark.parametrize("backends", BACKENDS, ids=lambda names: names[0])
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_trained_model_agrees_with_its_golden_outputs(
    golden: Path, backends: tuple[str, ...]
) -> None:
    pytest.importorskip("onnx", reason="the onnx package is not installed")
    path = shared_file("models", "onnx", golden.stem.removeprefix("onnx__") + ".onnx")
    runtime = armpy.Runtime(armpy.RuntimeOptions(backends=list(backends)))
    compared = 0
    with armpy.load(path, runtime=runtime) as model:
        for inputs, expected in cases(golden):
            got = model(*inputs)
            outputs = got if isinstance(got, tuple) else (got,)
            assert len(outputs) == len(expected)
            for ours, theirs in zip(outputs, expected, strict=True):
                assert ours.shape == theirs.shape
                assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()
                compared += 1
    assert compared
