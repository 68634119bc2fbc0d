"""Every real model gives the outputs that TFLite's kernels gave, on every own backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import UnsupportedOperatorError
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT
from armpy_testing.compared_arrays import check_arrays, of_largest
from armpy_testing.models.networks import placement_of
from armpy_testing.shared import FAMILIES, shared_file, shared_files

FOLDERS = (*FAMILIES, "keras_more", "operators")
GOLDEN = [path for folder in FOLDERS for path in shared_files("golden", f"{folder}__*.npz")]
BACKENDS = ("NumbaAcc", "CpuRef")
TOLERANCE = {"CpuRef": 1e-5, "NumbaAcc": 2e-5}
"""Of floats, relative to the largest output: NumbaAcc adds them up in another order."""

RELATIVE = {
    "keras_more__unet_float32": 1e-4,
    "keras_more__bert_tiny_dynamic": 3e-2,
    "keras_more__yolo_like_int16x8": 1e-3,
}
"""Wider tolerances of floats. TFLite's reference and optimised kernels differ by 4e-5 themselves in
the U-Net, whose 15 convolutions end in a softmax, and by 3.3 % in the dynamic BERT, where the last
bit of a float may move what is made of it by a whole step of 8 bits. Only TFLite's optimised
kernels load the detector of 16 bits; they quantise 64 of its 76,800 input elements to the next
step."""

INTEGERS = [
    "bert_tiny_int8",
    "unet_int16x8",
    "unet_int8",
    "yolo_like_int16x8",
    "yolo_like_int8",
]
"""Models of integers, whose outputs both backends agree on."""

UNACCELERATED = {
    "operators__hashtable",  # of strings
    "operators__op_BITCAST",
    "operators__op_CONV_3D_TRANSPOSE",
    "operators__op_UNIQUE",
}
"""Models of one operator that NumbaAcc leaves to CpuRef."""

DRAWN = {"operators__op_RANDOM_NORMAL"}
"""Models that add numbers of two seeds of 0, which are others each time."""

MOST_STEPS = 2
FEW = {"keras_more__yolo_like_int8": 0.005}
"""Shares of elements that may be off by more than `MOST_STEPS`, where TFLite's optimised kernels
made the golden outputs, whose fixed-point arithmetic is another one. Given their inputs, each layer
of the detector gives what they do, but for single steps in 0.14 % of the convolutions' elements; an
exponential at the end makes 63 of them. With XNNPACK TFLite is 31 steps from itself."""


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


def load(golden: Path, backend: str) -> armpy.Model:
    """The model of a golden file; skips the test if the converter lacks operators."""
    folder, name = golden.stem.split("__", 1)
    path = shared_file("models", folder, f"{name}.tflite")
    options = armpy.RuntimeOptions(backends=[backend, "CpuRef"], loop_timeout_s=60)
    try:
        return armpy.load(path, runtime=armpy.Runtime(options))
    except UnsupportedOperatorError as error:
        pytest.skip(str(error))


@pytest.mark.skipif(not GOLDEN, reason="no golden outputs beside the checkout")
def test_there_is_a_golden_file_per_folder() -> None:
    assert {path.stem.split("__")[0] for path in GOLDEN} == set(FOLDERS)


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_model_agrees_with_its_golden_outputs(golden: Path, backend: str) -> None:
    compared = 0
    with load(golden, backend) as model:
        for case, inputs, expected in cases(golden):
            got = model(*map(np.reshape, inputs, shapes_of(model, inputs)))
            assert model.placement is not None  # known once shapes are
            if golden.stem not in UNACCELERATED:
                assert model.placement.layers_by_backend.get(backend, 0) > 0
            outputs = got if isinstance(got, tuple) else (got,)
            assert len(outputs) == len(expected)
            for ours, theirs in zip(outputs, expected, strict=True):
                assert_agree(f"{golden.stem} / {case}", ours, theirs, backend)
                compared += 1
    assert compared


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGERS)
def test_backends_agree_on_integers(name: str) -> None:
    golden = shared_file("golden", f"keras_more__{name}.npz")
    _, inputs, _ = cases(golden)[-1]
    results = []
    for backend in BACKENDS:
        with load(golden, backend) as model:
            results.append(model(*inputs))
            assert set(placement_of(model).layers_by_backend) == {backend}
    ours, reference = results
    np.testing.assert_array_equal(ours, reference)


def shapes_of(model: armpy.Model, inputs: list[Array]) -> list[tuple[int, ...]]:
    """The inputs' shapes; LiteRT was given one element where the model wants a number."""
    return [
        () if info.shape == () else array.shape
        for info, array in zip(model.inputs, inputs, strict=True)
    ]


def assert_agree(what: str, ours: Array, theirs: Array, backend: str) -> None:
    """Compare dtype, shape, then values: integers are equal, floats relative to the largest."""
    name = what.split(" / ", maxsplit=1)[0]
    if ours.shape == ():
        theirs = theirs.reshape(())
    is_float = ours.dtype.kind == "f"
    if name in DRAWN or (name in FEW and not is_float):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
        if name in FEW:
            differences = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
            assert np.mean(differences > MOST_STEPS) <= FEW[name], what
        return
    bound = of_largest(theirs, RELATIVE.get(name, TOLERANCE[backend])) if is_float else EXACT
    check_arrays(theirs, ours, bound, what)
