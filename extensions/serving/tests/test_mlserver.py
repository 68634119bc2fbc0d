"""The adapter for MLServer answers as the model does, and refuses the same inputs."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import DataType, DeadObjectError, Model, Network, TensorInfo, ops

mlserver = pytest.importorskip("mlserver", reason="mlserver is not installed")

from armpy_serving.mlserver import ArmpyRuntime  # noqa: E402 - needs mlserver


@pytest.fixture(params=[False])
def unloaded(request: pytest.FixtureRequest, tmp_path: Path) -> Any:  # Any: MLServer's
    """A model, whose backend is isolated if the parameter is true."""
    net = Network()
    value = net.input("n", TensorInfo((None, 2), DataType.SIGNED32), default_shape=(1, 2))
    add = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    net.output("double", net.add(add, value, value))
    with Model(net) as model:
        model.save(tmp_path / "m.armpy")
    options = {"isolation": "process", "backends": ["CpuRef"]} if request.param else {}
    parameters = mlserver.settings.ModelParameters(
        uri=str(tmp_path / "m.armpy"), version="3", extra=options
    )
    settings = mlserver.ModelSettings(name="m", implementation=ArmpyRuntime, parameters=parameters)
    return ArmpyRuntime(settings)


@pytest.fixture
def runtime(unloaded: Any) -> Any:  # Any: MLServer's
    unloaded.ready = asyncio.run(unloaded.load())  # as MLServer does
    assert unloaded.ready
    yield unloaded
    assert asyncio.run(unloaded.unload())


def ask(runtime: Any, data: object, timeout: object = 0, **changes: Any) -> Any:
    """Answer a request."""  # Any: MLServer's
    tensor = {"name": "n", "shape": [1, 2], "datatype": "INT32", "data": data} | changes
    document = {"id": "7", "inputs": [tensor], "parameters": {"timeout": timeout}}
    request = mlserver.types.InferenceRequest.model_validate(document)
    return asyncio.run(runtime.predict(request))


@pytest.mark.parametrize("data", [[1, 2], [[1, 2]], [np.array([1, 2], "<i4").tobytes()]])
def test_numbers_and_bytes_are_answered(runtime: Any, data: object) -> None:  # Any: MLServer's
    answer = ask(runtime, data)
    assert (answer.id, answer.model_name, answer.model_version) == ("7", "m", "3")
    (output,) = answer.outputs
    assert (output.name, output.shape, output.datatype) == ("double", [1, 2], "INT32")
    assert output.data.root == [2, 4]


def test_a_model_that_fails_its_first_run_is_not_loaded(
    unloaded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # Any: MLServer's
    def run(*_: object, **__: object) -> None:
        raise DeadObjectError("gone")

    monkeypatch.setattr(Model, "run", run)
    with pytest.raises(DeadObjectError, match="gone"):
        asyncio.run(unloaded.load())


def test_metadata_have_open_dimensions(runtime: Any) -> None:  # Any: MLServer's
    assert runtime.inputs[0].shape == [-1, 2]


@pytest.mark.parametrize(
    ("data", "changes", "text"),
    [
        ([1.5, 2], {}, "not INT32"),
        ([1], {}, "not of the shape"),
        ([1, 2], {"name": "other"}, "missing 'n'"),
        ([1.0, 2.0], {"datatype": "FP32"}, "the datatype is not the model's"),
    ],
)
def test_wrong_requests_are_400(
    runtime: Any, data: object, changes: dict[str, Any], text: str
) -> None:  # Any: MLServer's
    with pytest.raises(mlserver.errors.MLServerError, match=text) as caught:
        ask(runtime, data, **changes)
    assert caught.value.status_code == 400


def test_a_deadline_that_passes_is_504(runtime: Any) -> None:  # Any: MLServer's
    with pytest.raises(mlserver.errors.MLServerError) as caught:
        ask(runtime, np.zeros(200_000, int).tolist(), timeout=1, shape=[100_000, 2])
    assert caught.value.status_code == 504


def test_a_timeout_that_is_none_is_400(runtime: Any) -> None:  # Any: MLServer's
    with pytest.raises(mlserver.errors.MLServerError, match="time-out") as caught:
        ask(runtime, [1, 2], timeout="soon")
    assert caught.value.status_code == 400


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("unloaded", [True], indirect=True)
def test_a_killed_backend_is_replaced_until_it_is_in_quarantine(
    runtime: Any,
) -> None:  # Any: MLServer's
    armpy_runtime = runtime.served.model.runtime
    for kills in range(1, 6):
        assert ask(runtime, [1, 2]).outputs[0].data.root == [2, 4]
        assert runtime.ready
        os.kill(armpy_runtime.isolation["CpuRef"].pid, signal.SIGKILL)
        with pytest.raises(mlserver.errors.MLServerError) as caught:
            ask(runtime, [1, 2])
        assert caught.value.status_code == 503
        assert armpy_runtime.isolation["CpuRef"].num_failures == kills
    with pytest.raises(mlserver.errors.MLServerError, match="quarantine"):
        ask(runtime, [1, 2])
    assert "quarantine" in runtime.served.health.problem(20, needs_trial=True)
    assert not runtime.ready
