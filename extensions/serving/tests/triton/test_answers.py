"""Triton's answers are armpy's, bit by bit, whatever client asks, and keep to the protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import ArmpyError, Model
from armpy.execution import TensorSpec
from armpy_serving.protocol import datatype_of
from armpy_serving.protocol_kit.answers import (
    check_model_metadata,
    checked_answer,
    strict_json,
)
from armpy_serving.triton import TritonExport, TritonOptions, export_model
from armpy_testing.effort import IS_CAMPAIGN
from armpy_testing.shared import SHARED

from .conftest import Start
from .triton_server import TritonServer

Arrays = dict[str, np.ndarray[Any, Any]]

FEW = (
    "mlperf_tiny/kws_ref_model.tflite",
    "micro/hello_world_float.tflite",
    "keras_more/bert_tiny_float32.tflite",
    "onnx/magika_standard_v3_3.onnx",
    "operators/any_size.tflite",
    "micro/trained_lstm_int8.tflite",
)
UNSURE = ("op_RANDOM_NORMAL", "on_device_training")
"""Models that answer otherwise each time, or change themselves."""

MOST_NUMBERS = 200_000
"""Of a request in JSON."""


def models() -> list[str]:
    """Paths of the models, from the shared folder."""
    files = sorted((SHARED / "models").glob("*/*.tflite")) + sorted(
        (SHARED / "models").glob("*/*.onnx")
    )
    names = [f"{path.parent.name}/{path.name}" for path in files if path.stem not in UNSURE]
    return names if IS_CAMPAIGN else [name for name in FEW if name in names]


def inputs_of(model: Model, path: Path) -> Arrays:
    """The first inputs that golden outputs were made of, or numbers that fit."""
    golden = SHARED / "golden" / f"{path.parent.name}__{path.stem}.npz"
    specs = model.inputs
    if golden.exists():
        with np.load(golden, allow_pickle=False) as arrays:
            cases = sorted({key.split("/")[0] for key in arrays if "/in" in key})
            for case in cases:
                first_case = [
                    arrays[key] for n in range(len(specs)) if (key := f"{case}/in{n}") in arrays
                ]
                if len(first_case) == len(specs):
                    return {s.name: shaped(s, a) for s, a in zip(specs, first_case, strict=True)}
    random = np.random.default_rng(3)
    random_arrays: Arrays = {}
    for spec, shape in zip(specs, model.default_shapes, strict=True):
        assert spec.shape is not None
        dims = [1 if n is None else n for n in (shape or spec.shape)]
        dtype = spec.data_type.dtype
        drawn = random.normal(size=dims) if dtype.kind == "f" else random.integers(0, 2, dims)
        random_arrays[spec.name] = np.asarray(drawn).astype(dtype)
    return random_arrays


def shaped(spec: TensorSpec, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as the model has its dimensions: golden files have none without any."""
    return array.reshape(()) if spec.shape == () else np.asarray(array)


def as_sent(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as Triton counts its dimensions."""
    return array.reshape(1) if array.ndim == 0 else array


def assert_same(found: Arrays, expected: Arrays) -> None:
    """The same outputs, bit by bit."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == as_sent(array).shape
        assert found[name].tobytes() == array.tobytes(), name


def ask_http(server: TritonServer, name: str, inputs: Arrays, types: dict[str, str]) -> Arrays:
    """Answers in binary."""
    import tritonclient.http as client

    asked = []
    for key, array in inputs.items():
        tensor = client.InferInput(key, as_sent(array).shape, types[key])
        tensor.set_data_from_numpy(as_sent(array), binary_data=True)
        asked.append(tensor)
    with client.InferenceServerClient(server.http) as http:
        answer = http.infer(name, asked)
    names = [output["name"] for output in answer.get_response()["outputs"]]
    return {key: answer.as_numpy(key) for key in names}


def ask_grpc(server: TritonServer, name: str, inputs: Arrays, types: dict[str, str]) -> Arrays:
    """Answers over gRPC, with raw contents."""
    import tritonclient.grpc as client

    asked = []
    for key, array in inputs.items():
        tensor = client.InferInput(key, as_sent(array).shape, types[key])
        tensor.set_data_from_numpy(as_sent(array))
        asked.append(tensor)
    with client.InferenceServerClient(server.grpc) as grpc:
        answer = grpc.infer(name, asked)
    names = [output.name for output in answer.get_response().outputs]
    return {key: answer.as_numpy(key) for key in names}


def ask_curl(server: TritonServer, name: str, inputs: Arrays, types: dict[str, str]) -> Arrays:
    """Answers in JSON alone, to a program that knows nothing of the protocol."""
    body = {
        "inputs": [
            {
                "name": key,
                "datatype": types[key],
                "shape": list(as_sent(array).shape),
                "data": array.ravel().tolist(),
            }
            for key, array in inputs.items()
        ],
    }
    address = f"http://{server.http}/v2/models/{name}/infer"
    done = subprocess.run(
        ["curl", "-sS", "-X", "POST", "-d", "@-", address],
        input=json.dumps(body).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return checked_answer(done.stdout, None)


@pytest.fixture
def explicit(start: Start, tmp_path: Path) -> TritonServer:
    """A server that loads models on request only."""
    return start(tmp_path / "repository", "--model-control-mode=explicit", waits=False)


def load(server: TritonServer, name: str, *, away: bool = False) -> None:
    """Have a model loaded, or unloaded."""
    import tritonclient.http as client

    with client.InferenceServerClient(server.http, network_timeout=120) as http:
        if away:
            http.unload_model(name)
        else:
            http.load_model(name)


def served_and_compared(
    server: TritonServer, model: Model, repository: Path, path: Path | None, inputs: Arrays
) -> None:
    """Serve a model and compare what all clients get."""
    name = "served" if path is None else path.stem
    export_model(model, repository, TritonExport(TritonOptions(name)), path)
    model.reset_state()
    expected = model.run(inputs)
    load(server, name)
    try:
        metadata = strict_json(server.page(server.http, f"/v2/models/{name}").encode())
        check_model_metadata(metadata)
        assert {"inputs", "outputs"} <= metadata.keys()
        types = {spec.name: datatype_of(spec.data_type) for spec in model.inputs}
        # Twice: a model with state begins anew.
        for _ in range(2):
            assert_same(ask_http(server, name, inputs, types), expected)
        assert_same(ask_grpc(server, name, inputs, types), expected)
        arrays = (*inputs.values(), *expected.values())
        is_sayable = all(np.isfinite(array).all() for array in arrays)
        is_small = sum(array.size for array in arrays) < MOST_NUMBERS
        if is_sayable and is_small and shutil.which("curl"):
            assert_same(ask_curl(server, name, inputs, types), expected)
    finally:
        load(server, name, away=True)
        shutil.rmtree(repository / name)


def test_shared_models_answer_as_armpy_does(explicit: TritonServer, tmp_path: Path) -> None:
    compared, differing = 0, []
    for name in models():
        path = SHARED / "models" / name
        try:
            model = armpy.load(path, num_threads=1)
        except ArmpyError:
            continue  # armpy has no such operator
        with model:
            if any(s.shape is None for s in (*model.inputs, *model.outputs)):
                continue
            inputs = inputs_of(model, path)
            try:
                served_and_compared(explicit, model, tmp_path / "repository", path, inputs)
            except Exception as error:  # noqa: BLE001 - each model's, at the end
                differing.append(f"{name}: {type(error).__name__}: {error}"[:300])
            compared += 1
    assert not differing, "\n".join(differing)
    if not compared:
        pytest.skip("test data are not beside the checkout")
