"""Triton with armpy's models: every datatype, steps of ensembles, errors, shared weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import DataType, Model, Network, Quantization, TensorInfo, ops
from armpy_serving.protocol import datatype_of
from armpy_serving.protocol_kit.answers import checked_message
from armpy_serving.triton import (
    EnsembleOptions,
    InstanceSettings,
    TritonExport,
    TritonOptions,
    export_model,
)

from .conftest import Start
from .triton_server import TritonServer

TYPES = (
    *(DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64, DataType.BFLOAT16, DataType.BOOLEAN),
    *(DataType.SIGNED8, DataType.SIGNED16, DataType.SIGNED32, DataType.SIGNED64),
    *(DataType.UNSIGNED8, DataType.UNSIGNED16, DataType.UNSIGNED32, DataType.UNSIGNED64),
)


def export(model: Model, repository: Path, name: str, **named: Any) -> None:
    """Export a model and close it."""
    options = {key: named.pop(key) for key in ("max_batch", "instances", "labels") if key in named}
    with model:
        triton_export = TritonExport(TritonOptions(name, **options), **named)
        export_model(model, repository, triton_export)


def transposing(data_type: DataType, *shape: int | None) -> Model:
    """A model that transposes its input, of whatever type."""
    net = Network()
    first = tuple(n if n is not None else 2 for n in shape)
    value = net.input("x", TensorInfo(shape, data_type), default_shape=first)
    net.output("y", net.add(ops.Transpose(tuple(range(len(shape)))[::-1]), value))
    return Model(net)


def infer(server: TritonServer, name: str, datatype: str, array: np.ndarray[Any, Any]) -> Any:
    """Ask with an array's bytes; the answer's shape and bytes."""
    from tritonclient import grpc

    tensor = grpc.InferInput("x", array.shape, datatype)
    tensor._raw_content = array.tobytes()
    with grpc.InferenceServerClient(server.grpc) as client:
        (output,) = checked_message(client.infer(name, [tensor]).get_response()).values()
    return output.shape, output.tobytes()


def test_every_datatype_goes_through(start: Start, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for data_type in TYPES:
        export(transposing(data_type, 2, 3), repository, data_type.name)
    export(transposing(DataType.FLOAT32), repository, "scalar")
    export(transposing(DataType.FLOAT32, None, 2), repository, "empty")
    server = start(repository)
    for data_type in TYPES:
        bits = np.arange(6, dtype=np.uint8) if data_type is not DataType.BOOLEAN else np.eye(6)[0]
        array = bits.astype(data_type.dtype).reshape(2, 3)
        shape, content = infer(server, data_type.name, datatype_of(data_type), array)
        assert (shape, content) == ((3, 2), array.T.tobytes()), data_type
    assert infer(server, "scalar", "FP32", np.ones(1, "f4")) == ((1,), np.ones(1, "f4").tobytes())
    assert infer(server, "empty", "FP32", np.ones((0, 2), "f4")) == ((2, 0), b"")
    assert infer(server, "empty", "FP32", np.ones((3, 2), "f4"))[0] == (2, 3)


def test_ensemble_takes_pixels_and_returns_the_best_classes(start: Start, tmp_path: Path) -> None:
    from tritonclient import http

    net = Network()
    scale = Quantization.per_tensor(0.5, 0)
    value = net.input("x", TensorInfo((None, 4), DataType.QASYMM_S8, scale), default_shape=(1, 4))
    net.output("y", net.add(ops.Reshape(target_shape=(-1, 4)), value))
    around = EnsembleOptions(mean=(100.0,), std=(2.0,), top=2)
    repository = tmp_path / "repository"
    with Model(net) as model:
        for name, options in (("best", around), ("real", EnsembleOptions())):
            export_options = TritonExport(TritonOptions(name, max_batch=4), ensemble=options)
            export_model(model, repository, export_options)
    server = start(repository)
    pixels = np.array([[100, 104, 98, 110], [90, 80, 70, 60]], np.uint8)  # 0 2 -1 5; -5 -10 ...
    with http.InferenceServerClient(server.http) as client:
        tensor = http.InferInput("x", pixels.shape, "UINT8")
        tensor.set_data_from_numpy(pixels)
        answer = client.infer("best", [tensor])
        assert answer.as_numpy("classes").tolist() == [[3, 1], [0, 1]]
        assert answer.as_numpy("scores").tolist() == [[5, 2], [-5, -10]]
        real = np.array([[0.5, 1.2, -3, 4]], np.float32)
        tensor = http.InferInput("x", real.shape, "FP32")
        tensor.set_data_from_numpy(real)
        assert client.infer("real", [tensor]).as_numpy("y").tolist() == [[0.5, 1, -3, 4]]
        tensor.set_data_from_numpy(np.full((1, 4), np.nan, np.float32))
        with pytest.raises(Exception, match=r"finite|NaN|nan"):
            client.infer("real", [tensor])


def proportional_bytes(process: int) -> dict[str, int]:
    """Memory of a process, shared pages by their share; the parts of files and of the model."""
    totals = {"all": 0, "model": 0, "private model": 0}
    name = ""
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        fields = line.split()
        if not fields[0].endswith(":"):
            name = fields[-1]
        elif fields[0] == "Pss:":
            totals["all"] += int(fields[1]) << 10
            totals["model"] += (int(fields[1]) << 10) * name.endswith(".armpy")
        elif fields[0] == "Private_Dirty:":
            totals["private model"] += (int(fields[1]) << 10) * name.endswith(".armpy")
    return totals


@pytest.mark.parametrize(("max_batch", "files"), [(0, 1), (2, 2)])
def test_instances_share_one_copy_of_the_weights(
    start: Start, tmp_path: Path, max_batch: int, files: int
) -> None:
    net = Network()
    width = 2048
    value = net.input("x", TensorInfo((1, width), DataType.FLOAT32))
    random = np.random.default_rng(1)
    for _ in range(4):  # 16 MB each
        weights = net.constant(random.normal(size=(width, width)).astype(np.float32) * 1e-3)
        value = net.add(ops.FullyConnected(), value, weights)
    net.output("y", value)
    settings = InstanceSettings("", {"num_threads": 1})
    options = {"instances": 4, "max_batch": max_batch}
    export(Model(net), tmp_path / "repository", "m", settings=settings, **options)
    server = start(tmp_path / "repository")
    for _ in range(8):
        infer(server, "m", "FP32", np.ones((1, width), np.float32))
    instances = server.instances()
    assert len(instances) == 4
    memories = [proportional_bytes(process) for process in instances]
    weights_bytes = files * 4 * width * width * 4
    mapped = sum(memory["model"] for memory in memories)
    assert mapped > weights_bytes * 0.9, "the weights are mapped"
    assert mapped < weights_bytes * 1.2, "and once for all"
    assert all(memory["private model"] == 0 for memory in memories)
    assert all(memory["all"] < weights_bytes / 4 + (120 << 20) for memory in memories), memories
