"""Prepared models give the same, bit for bit, in a Python without compilers and parsers."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from armpy_testing.shared import shared_file
from lab.comparison.trees import ENTRY_POINTS

pytest.importorskip("numba", reason="Numba is not installed")

MOST_MODULES = 52
MODELS = [
    ("mlperf_tiny", "ad01_int8.tflite"),
    ("keras_more", "text_gru_float32.tflite"),
]
PACKAGES = ("numpy", "pluggy", "packaging", "armpy", "armpy_reference", "armpy_numba_acc")

PROGRAM = """
import sys
from importlib.util import find_spec

packages, path, inputs_path, outputs_path = sys.argv[1:]
sys.path.insert(0, packages)
for name in ("numba", "llvmlite", "tflite", "flatbuffers", "onnx"):
    assert find_spec(name) is None, name

import armpy
import numpy as np

with np.load(inputs_path) as file:
    inputs = [file[name] for name in file.files]
model = armpy.load(path)
# Names of tensors are no names of files in an archive: both sides go by position.
outputs = model.run({spec.name: inputs[n] for n, spec in enumerate(model.inputs)})
modules = [name for name in sys.modules if name.split(".")[0] == "armpy"]
assert model.is_light, model.placement
np.savez(outputs_path, *[outputs[spec.name] for spec in model.outputs])
print(sum(not hasattr(sys.modules[name], "__path__") for name in modules))
"""
"""Runs a compiled model, and prints how many modules of armpy that took."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``sys.path`` that has links to `PACKAGES` and armpy's entry points alone."""
    folder = tmp_path_factory.mktemp("packages")
    for name in PACKAGES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        place = Path(spec.origin).parent
        (folder / name).symlink_to(place)
        libraries = place.parent / f"{name}.libs"
        if libraries.is_dir():
            (folder / libraries.name).symlink_to(libraries)
    about = folder / "armpy-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: armpy\nVersion: 0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def small_numbers(model: armpy.Model) -> list[Array]:
    """Inputs of the shapes that a model is prepared for."""
    random, graph = np.random.default_rng(0), model.graph
    arrays: list[Array] = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        shape = value.info.known_shape if value.info.is_fully_shaped else default
        arrays.append(random.integers(0, 4, shape).astype(value.info.data_type.dtype))
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize("parts", MODELS, ids="/".join)
def test_outputs_are_equal_and_little_is_imported(
    parts: tuple[str, str], packages: Path, tmp_path: Path
) -> None:
    path, sent, got = (tmp_path / name for name in ("model.armpy", "in.npz", "out.npz"))
    with armpy.load(shared_file("models", *parts)) as model:
        model.prepare()
        inputs = small_numbers(model)
        named = dict(zip([spec.name for spec in model.inputs], inputs, strict=True))
        expected = [model.run(named)[spec.name] for spec in model.outputs]
        model.save(path)
    np.savez(sent, *inputs)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("ARMPY_")}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, *map(str, (packages, path, sent, got))],
        env=environment | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with np.load(got) as file:
        for wanted, name in zip(expected, file.files, strict=True):
            assert (wanted.dtype, wanted.shape) == (file[name].dtype, file[name].shape)
            assert wanted.tobytes() == file[name].tobytes()
    assert int(done.stdout) < MOST_MODULES
