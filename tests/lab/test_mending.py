from __future__ import annotations

from pathlib import Path

import tflite

from armpy_testing.models.tflite_writer import TfliteModel
from lab.benchmarks.mending import mended


def model_file(folder: Path, axes: list[int]) -> Path:
    """A model with a bias, weights and a number, quantised along these axes."""
    model = TfliteModel()
    part = model.subgraph("main")
    part.tensor("bias", (2,), "INT32", scale=[0.5, 0.25], axis=axes[0])
    part.tensor("weights", (1, 3, 3, 2), "INT8", scale=[0.5, 0.25], axis=axes[1])
    part.tensor("number", (), "INT8", scale=0.5, axis=axes[2])
    part.tensor("floats", (2,))
    path = folder / "model.tflite"
    path.write_bytes(model.to_bytes())
    return path


def test_axes_that_tensors_do_not_have_become_the_first(tmp_path: Path) -> None:
    file = model_file(tmp_path, [1, 3, 2])
    copy = mended(file)
    assert copy != file
    assert len(copy.read_bytes()) == len(file.read_bytes())
    assert parsed_axes(copy) == [0, 3, 0]


def test_sound_files_are_used_as_they_are(tmp_path: Path) -> None:
    path = model_file(tmp_path, [0, 3, 0])
    assert mended(path) == path


def parsed_axes(path: Path) -> list[int]:
    """Axes as the schema's own reader sees them."""
    subgraph = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0)
    quantizations = [subgraph.Tensors(i).Quantization() for i in range(3)]
    return [quantization.QuantizedDimension() for quantization in quantizations]
