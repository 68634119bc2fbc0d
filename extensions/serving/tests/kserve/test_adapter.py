"""The model class in KServe's own server: requests that KServe has read."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import (
    DataType,
    Model,
    ModelNotFoundError,
    Network,
    TensorInfo,
    ops,
)
from armpy.execution import RuntimeOptions
from armpy_serving.requests import InferenceRequest
from armpy_testing.backends.slow_backend import SlowBackend

kserve = pytest.importorskip("kserve", reason="kserve is not installed")

from armpy_serving.kserve import ArmpyModel, ArmpyModelRepository  # noqa: E402 - needs kserve
from armpy_testing.backends.fake_backends import runtime_of  # noqa: E402

X = np.array([[0.1, -2]], np.float32)


@pytest.fixture
def mixed(small_models: Path) -> Any:  # Any: KServe's
    model = ArmpyModel("mixed", small_models / "mixed.armpy")
    model.load()
    yield model
    model.stop()


def request(raw: bool = False, **numbers: list[Any]) -> Any:
    """A request of KServe's; over gRPC if raw."""  # Any: KServe's
    values = {"n": [1, 2, 3], "q": [1]} | numbers
    tensors = [
        kserve.InferInput("x:0", [1, 2], "FP32", X.ravel().tolist()),
        kserve.InferInput("n", [3], "INT32", values["n"]),
        kserve.InferInput("flags", [2], "BOOL", [True, False]),
        kserve.InferInput("q", [], "INT8", values["q"]),
    ]
    contents = None
    if raw:
        q = np.array(values["q"], np.int8).tobytes()
        contents = [X.tobytes(), np.array(values["n"], np.int32).tobytes(), b"\x01\x00", q]
        for tensor in tensors:
            tensor._data = None
    return kserve.InferRequest("mixed", tensors, "7", contents, from_grpc=raw)


@pytest.mark.parametrize("raw", [False, True])
def test_kserve_gets_an_answer(mixed: Any, raw: bool) -> None:  # Any: KServe's
    answer = asyncio.run(mixed.predict(request(raw)))
    assert answer.id == "7"
    if raw:
        assert answer.raw_output_contents[0] == (X * 2).tobytes()
    else:
        outputs = {output["name"]: output for output in answer.to_rest()[0]["outputs"]}
        assert np.float32(outputs["double"]["data"]).tobytes() == (X * 2).tobytes()


def test_errors_over_grpc_are_its_codes(mixed: Any) -> None:  # Any: KServe's
    import grpc
    from grpc_interceptor.exceptions import GrpcException

    with pytest.raises(GrpcException) as caught:
        asyncio.run(mixed.predict(request(True, n=[1, 2])))
    assert caught.value.status_code is grpc.StatusCode.INVALID_ARGUMENT
    mixed.stop()
    with pytest.raises(GrpcException) as caught:
        asyncio.run(mixed.predict(request(True)))
    assert caught.value.status_code is grpc.StatusCode.UNAVAILABLE


def test_a_pickled_model_loads_again(mixed: Any) -> None:  # Any: KServe's
    copy = pickle.loads(pickle.dumps(mixed))
    assert copy.ready
    answer = asyncio.run(copy.predict(request()))
    assert answer.get_output_by_name("double").data.tobytes() == (X * 2).tobytes()
    copy.stop()


def slow_model(folder: Path, **options: Any) -> tuple[Any, SlowBackend]:
    """A model whose layers wait for a gate."""  # Any: KServe's
    backend = SlowBackend(looks=True)
    net = Network()
    value = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    net.output("y", net.add(ops.Activation(ops.ActivationFunction.RELU), value))
    with Model(net) as slow:
        slow.save(folder / "slow.armpy")
    with runtime_of(backend) as runtime:
        registry = runtime.registry
        runtime_options = RuntimeOptions([backend.get_id()], registry=registry)
        model = ArmpyModel(
            "slow", folder / "slow.armpy", {"runtime_options": runtime_options}, **options
        )
        backend.gate.set()  # it is run once when it is loaded
        model.load()
        backend.gate.clear()
        backend.entered.clear()
    return model, backend


ONES = InferenceRequest({"x": np.ones(2, np.float32)}, {"x": "FP32"})


def test_the_event_loop_goes_on_while_a_model_runs(tmp_path: Path) -> None:
    async def ask() -> None:
        model, backend = slow_model(tmp_path)
        run = asyncio.create_task(model.infer(ONES))
        while not backend.entered.is_set():  # for ever, if the loop computed
            await asyncio.sleep(0.001)
        backend.gate.set()
        assert (await run)[1]["y"].tolist() == [1, 1]
        model.stop()

    asyncio.run(ask())


def test_who_is_cancelled_stops_the_run(tmp_path: Path) -> None:
    async def ask() -> None:
        model, backend = slow_model(tmp_path, short_run_s=0)
        run = asyncio.create_task(model.infer(ONES))
        while not backend.entered.is_set():
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        # It waits for what runs: for ever if the run were not stopped, as the gate is closed.
        await asyncio.to_thread(model.served.model.close)

    asyncio.run(ask())


def test_a_replaced_model_answers_what_it_has_begun(small_models: Path, tmp_path: Path) -> None:
    async def ask() -> None:
        model, backend = slow_model(tmp_path)
        repository = ArmpyModelRepository(tmp_path / "slow.armpy", "slow")
        repository.update(model)
        run = asyncio.create_task(repository.served_model("slow").infer(ONES))
        while not backend.entered.is_set():
            await asyncio.sleep(0.001)
        await repository.load("slow")
        assert repository.served_model("slow") is not model
        assert (await model.infer(ONES))[1]["y"].tolist() == [1, 1]  # by the one in its place
        assert (await repository.served_model("slow").infer(ONES))[1]["y"].tolist() == [1, 1]
        backend.gate.set()
        assert (await run)[1]["y"].tolist() == [1, 1]
        repository.unload("slow")
        assert repository.index() == [
            {"name": "slow", "state": "UNAVAILABLE", "reason": "unloaded"}
        ]
        with pytest.raises(ModelNotFoundError):
            repository.served_model("slow")

    asyncio.run(ask())


def test_a_file_that_cannot_be_loaded_leaves_the_model_in_its_place(
    small_models: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.armpy"
    path.write_bytes((small_models / "mixed.armpy").read_bytes())
    repository = ArmpyModelRepository(tmp_path, "m")
    repository.load_models()
    before = repository.served_model("m")
    other = tmp_path / "new"
    other.write_bytes(b"nothing")
    other.rename(path)
    with pytest.raises(Exception, match=r"m\.armpy"):
        asyncio.run(repository.load("m"))
    assert repository.served_model("m") is before
    repository.unload("m")
