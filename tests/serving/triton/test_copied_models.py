"""Models that cannot be compiled ahead, whose own files go to the server."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from armpy import Model, UnimplementedError
from armpy.cli.app import app
from tests.serving.triton.exports import settings_of
from tests.serving.triton.instances import arguments, request, values
from tests.support.tflite_writer import TfliteModel


@pytest.fixture(autouse=True)
def _no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model can be compiled ahead, as those cannot that have an operation of a plugin's."""

    def save(*_: object, **__: object) -> None:
        raise UnimplementedError("an operation is a plugin's")

    monkeypatch.setattr(Model, "save", save)


def two_signatures() -> bytes:
    """A model whose signature ``one`` adds ``x`` to itself, ``two`` multiplies."""
    model = TfliteModel()
    for name, kind in (("one", "ADD"), ("two", "MUL")):
        graph = model.subgraph(name)
        x, y = (graph.tensor(tensor, (1, 2)) for tensor in "xy")
        graph.operator(kind, [x, x], [y], {})
        graph.inputs(x)
        graph.outputs(y)
        model.signature(name, {"x": x}, {"y": y})
    return model.to_bytes()


def exported(path: Path, *options: str) -> Any:
    """The result of the command."""
    command = ["export-triton", str(path), "-o", str(path.parent / "r"), "--name", "m", *options]
    return CliRunner().invoke(app, command)


def answer_of(adapter: ModuleType, repository: Path, *row: float) -> Any:
    """What an instance answers."""
    instance = adapter.TritonModel()
    instance.initialize(arguments(repository, 0))
    (answer,) = instance.execute([request(row)])
    instance.finalize()
    return values(answer)


def test_copied_model_is_read_as_it_was_exported(adapter: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(two_signatures())
    told = exported(path, "--signature", "two", "--front-end", "tflite", "--memory-limit-mb", "64")
    assert told.exit_code == 0, told.output
    assert "model.tflite" in os.listdir(tmp_path / "r" / "m" / "1")
    assert settings_of(tmp_path / "r" / "m")["load_options"] == {
        "signature": "two",
        "front_end": "tflite",
        "memory_limit_bytes": 64 << 20,
    }
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[9, 25]]
    again = exported(path, "--signature", "two", "--isolate", "CpuRef", "--force")
    assert again.exit_code == 0, again.output
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[9, 25]], "on a runtime of its own as well"


def external(folder: Path, location: str) -> Path:
    """An ONNX model, whose weights lie beside it."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx.parser")
    head = '<ir_version: 9, opset_import: ["" : 18]>\n'
    text = "graph (float[1, 2] x) => (float[1, 2] y) { y = MatMul (x, w) }"
    model = onnx.parser.parse_model(head + text)
    tensor = onnx.TensorProto(name="w", dims=[2, 2], data_type=onnx.TensorProto.FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    model.graph.initializer.add().CopyFrom(tensor)
    (folder / location).parent.mkdir(exist_ok=True)
    (folder / location).write_bytes(np.diag([2, 10]).astype(np.float32).tobytes())
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["net.onnx.data", "parts/w.bin"])
def test_files_beside_the_model_go_with_it(
    adapter: ModuleType, tmp_path: Path, location: str
) -> None:
    path = external(tmp_path, location)
    told = exported(path)
    assert told.exit_code == 0, told.output
    (tmp_path / location).unlink()
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[6, 50]]


@pytest.mark.parametrize("location", ["model.py", "armpy.json", "model.onnx"])
def test_file_beside_the_model_of_a_name_of_the_export_s_is_refused(
    tmp_path: Path, location: str
) -> None:
    told = exported(external(tmp_path, location))
    assert told.exit_code != 0
    assert location in f"{told.output}{told.exception}"
    assert "cannot be copied beside it" in f"{told.output}{told.exception}"
    assert not (tmp_path / "r" / "m").exists()
