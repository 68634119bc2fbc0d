"""Models that cannot be compiled ahead, whose own files go to the server."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from armpy import Model, UnimplementedError
from armpy_testing.command_line import armpy_output
from armpy_testing.models.external_data import naming_itself
from armpy_testing.models.tflite_writer import TfliteModel

from .exports import settings_of
from .instances import arguments, request, values


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


def exported(path: Path, *options: str) -> tuple[int, str]:
    """The exit code and the output of the command."""
    command = ["export-triton", str(path), "-o", str(path.parent / "r"), "--name", "m", *options]
    return armpy_output(command)


def answer_of(adapter: ModuleType, repository: Path, *row: float) -> Any:
    """What an instance answers."""
    instance = adapter.TritonModel()
    instance.initialize(arguments(repository, 0))
    (answer,) = instance.execute([request(row)])
    instance.finalize()
    return values(answer)


@pytest.mark.slow
def test_copied_model_is_read_as_it_was_exported(adapter: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(two_signatures())
    code, output = exported(
        path, "--signature", "two", "--front-end", "tflite", "--memory-limit-mb", "64"
    )
    assert code == 0, output
    assert "model.tflite" in os.listdir(tmp_path / "r" / "m" / "1")
    assert settings_of(tmp_path / "r" / "m")["load_options"] == {
        "signature": "two",
        "front_end": "tflite",
        "memory_limit_bytes": 64 << 20,
    }
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[9, 25]]
    code, output = exported(path, "--signature", "two", "--isolate", "CpuRef", "--force")
    assert code == 0, output
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[9, 25]], "on a runtime of its own as well"


def test_memory_limit_of_no_isolated_backend_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(two_signatures())
    code, output = exported(path, "--isolate-memory-mb", "64")
    assert (code, "--isolate-memory-mb is for --isolate" in output) == (2, True)


def external(folder: Path, location: str) -> Path:
    """An ONNX model, whose weights lie beside it."""
    pytest.importorskip("armpy_onnx")
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


@pytest.mark.parametrize("name", ["net.onnx", "model.onnx"])
def test_a_model_whose_tensors_lie_in_its_own_file_is_copied(
    adapter: ModuleType, tmp_path: Path, name: str
) -> None:
    path = naming_itself(tmp_path / name, np.array([[2, 0], [0, 10]], np.float32))
    code, output = exported(path)
    assert code == 0, output
    path.unlink()
    assert answer_of(adapter, tmp_path / "r", 3, 5) == [[6, 50]]


def test_a_model_that_python_would_import_is_not_copied(tmp_path: Path) -> None:
    path = external(tmp_path, "w.bin")
    code, output = exported(path.rename(tmp_path / "net.so"))
    assert code != 0
    assert "Python would import a copy of it" in output
    assert not (tmp_path / "r" / "m").exists()


def test_data_files_of_a_plugin_s_front_end_are_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(model: Model, *_: object, **__: object) -> None:
        model.provenance.are_all = False  # as after a front-end that does not rename files
        raise UnimplementedError("an operation is a plugin's")

    monkeypatch.setattr(Model, "save", save)
    code, output = exported(external(tmp_path, "w.bin"))
    assert code != 0
    assert "a plugin's front-end reads them" in output
    assert not (tmp_path / "r" / "m").exists()
