"""The model that the server calls: batches, errors, cancellation, types, without a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import (
    DataType,
    InvalidArgumentError,
    MemoryLimitError,
    Model,
    Network,
    ParserError,
    TensorInfo,
    ops,
)
from armpy_serving.triton import bfloat
from armpy_serving.triton.config import TritonOptions
from armpy_serving.triton.export import TritonExport, export_model
from armpy_serving.triton.settings import InstanceSettings

from . import triton_utilities
from .instances import arguments, doubling, request, values
from .triton_utilities import InferenceRequest, Tensor, TritonError

Loaded = Callable[..., Any]


@pytest.fixture
def loaded(adapter: ModuleType, tmp_path: Path) -> Iterator[Loaded]:
    """Exports a network and loads it as an instance does."""
    instances = []

    def load(net: Network, max_batch: int = 0, **changes: Any) -> Any:
        options = TritonOptions("m", max_batch=max_batch)
        with Model(net) as model:
            export_model(model, tmp_path, TritonExport(options))
        instance = adapter.TritonModel()
        instance.initialize(arguments(tmp_path, max_batch))
        instances.append(instance)
        return instance

    yield load
    for instance in instances:
        instance.finalize()


def watch_runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Inputs of each run of a model from now on."""
    seen: list[Any] = []
    run = Model.run

    def watched(model: Model, inputs: Any, *rest: Any) -> Any:
        seen.append(inputs["x"])
        return run(model, inputs, *rest)

    monkeypatch.setattr(Model, "run", watched)
    return seen


def test_requests_run_as_one_batch_and_get_their_own_rows(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = loaded(doubling(None, 2), max_batch=8)
    seen = watch_runs(monkeypatch)
    answers = instance.execute([request([1, 2]), request([3, 4], [5, 6]), request([7, 8])])
    assert [values(answer) for answer in answers] == [[[2, 4]], [[6, 8], [10, 12]], [[14, 16]]]
    assert [batch.shape for batch in seen] == [(4, 2)]


def test_batch_is_filled_up_to_a_prepared_size_with_a_row_of_its_own(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = loaded(doubling(None, 2), max_batch=8)
    seen = watch_runs(monkeypatch)
    answers = instance.execute([request([1, 2], [3, 4]), request([5, 6])])
    assert [values(answer) for answer in answers] == [[[2, 4], [6, 8]], [[10, 12]]]
    assert seen[0].tolist() == [[1, 2], [3, 4], [5, 6], [1, 2]]


def test_requests_of_other_shapes_run_in_batches_of_their_own(
    adapter: ModuleType, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "WATCHES_FROM_S", 60.0)  # the first run compiles
    instance = loaded(doubling(None, None), max_batch=8)
    seen = watch_runs(monkeypatch)
    answers = instance.execute([request([1, 2]), request([3]), request([4, 5]), request([6])])
    assert [values(answer) for answer in answers] == [[[2, 4]], [[6]], [[8, 10]], [[12]]]
    assert sorted(batch.shape for batch in seen) == [(2, 1), (2, 2)]


def test_failing_request_costs_the_others_nothing(loaded: Loaded) -> None:
    net = Network()
    table = net.constant(np.array([[1.0], [2.0]], np.float32))
    value = net.input("x", TensorInfo((None,), DataType.SIGNED32))
    net.output("y", net.add(ops.Gather(axis=0), table, value))
    instance = loaded(net, max_batch=4)

    def index(number: int) -> InferenceRequest:
        return InferenceRequest([Tensor("x", np.array([[number]], np.int32))])

    answers = instance.execute([index(1), index(7), index(0)])
    assert values(answers[0]) == [[2.0]]
    assert values(answers[2]) == [[1.0]]
    assert answers[1].error() is not None
    assert answers[1].output_tensors() == []


def test_strings_above_the_memory_limit_are_the_caller_s_fault(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Network()
    value = net.input("x", TensorInfo((1,), DataType.STRING))
    net.output("y", net.add(ops.StringConcat(), value, value))
    instance = loaded(net)
    monkeypatch.setattr(Model, "memory_limit_bytes", 10)
    (answer,) = instance.execute([InferenceRequest([Tensor("x", np.array([b"abcd"], object))])])
    assert answer.error().code() == TritonError.INVALID_ARG


def test_unequal_rows_are_the_caller_s_fault(loaded: Loaded) -> None:
    net = Network()
    info = TensorInfo((None, 2), DataType.FLOAT32)
    lhs, rhs = net.input("x", info), net.input("z", info)
    net.output("y", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), lhs, rhs))
    instance = loaded(net, max_batch=4)
    tensors = [Tensor("x", np.ones((1, 2), "f4")), Tensor("z", np.ones((2, 2), "f4"))]
    (answer,) = instance.execute([InferenceRequest(tensors)])
    assert answer.error().code() == TritonError.INVALID_ARG
    assert "equally many rows" in answer.error().message()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgumentError("wrong"), TritonError.INVALID_ARG),
        (MemoryLimitError("much"), TritonError.UNAVAILABLE),
        (MemoryError(), TritonError.UNAVAILABLE),
        (armpy.DeadObjectError("dead"), TritonError.UNAVAILABLE),
        (ValueError("a fault of armpy's"), TritonError.INTERNAL),
    ],
)
def test_errors_have_their_codes(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    instance = loaded(doubling(2))

    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(Model, "run", failing)
    single = InferenceRequest([Tensor("x", np.ones(2, np.float32))])
    (answer,) = instance.execute([single])
    assert answer.error().code() == code


def test_cancelled_request_is_left_out_where_runs_are_long(
    adapter: ModuleType, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = loaded(doubling(None, 2), max_batch=4)
    gone = request([1, 2], cancelled=True)
    (answer,) = instance.execute([gone])
    assert values(answer) == [[2, 4]]
    assert gone.asked == []  # asking takes longer than the run
    monkeypatch.setattr(adapter, "LOOKS_FROM_S", 0.0)
    answers = instance.execute([gone, request([3, 4])])
    assert answers[0].error().code() == TritonError.CANCELLED
    assert values(answers[1]) == [[6, 8]]


def test_long_run_is_stopped_without_a_waiting_client(
    adapter: ModuleType, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:

    instance = loaded(doubling(2))
    single = InferenceRequest([Tensor("x", np.ones(2, np.float32))])
    future: Future[Any] = Future()

    def start(*_: object, **named: object) -> Future[Any]:
        single.cancelled = True
        return future

    monkeypatch.setattr(Model, "start", start)
    monkeypatch.setattr(adapter, "WATCHES_FROM_S", 0.0)
    (answer,) = instance.execute([single])
    assert answer.error().code() == TritonError.CANCELLED
    assert future.cancelled()


def test_time_out_ends_a_run_and_is_reported(loaded: Loaded) -> None:
    instance = loaded(doubling(None, 2), max_batch=4)
    late, other = request([1, 2], timeout_us=1), request([3, 4])
    answers = instance.execute([late, other])
    assert answers[0].error().code() == TritonError.UNAVAILABLE
    assert "time" in answers[0].error().message()
    assert values(answers[1]) == [[6, 8]]
    (alone,) = instance.execute([request([1, 2], timeout_us=1)])
    assert alone.error().code() == TritonError.UNAVAILABLE


def test_scalar_has_a_dimension_for_the_server(loaded: Loaded) -> None:
    instance = loaded(doubling())
    (answer,) = instance.execute([InferenceRequest([Tensor("x", np.array([3], np.float32))])])
    assert values(answer) == [6]


def test_bfloat16_goes_by_its_bits(loaded: Loaded) -> None:
    net = Network()
    value = net.input("x", TensorInfo((2,), DataType.BFLOAT16))
    net.output("y", net.add(ops.Reshape(target_shape=(2, 1)), value))
    instance = loaded(net)
    bits = np.array([0x3F80, 0xC000], np.uint16)  # 1 and -2
    (answer,) = instance.execute([InferenceRequest([Tensor("x", bits, is_bfloat=True)])])
    assert answer.error() is None
    output = answer.output_tensors()[0]
    assert output.array.tolist() == [[0x3F80], [0xC000]]
    del answer, output
    assert not bfloat._lent, "the memory that was read is released"


def test_metrics_are_added_up_by_the_server(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy_serving.triton.metrics_reporter.INTERVAL_S", 0.001)
    instance = loaded(doubling(None, 2), max_batch=4)
    families = triton_utilities.MetricFamily.made

    def wait_for(num_batches: int) -> None:
        """Wait until the last number of a report is there."""
        end_s = time.monotonic() + 30
        while True:
            family = families.get("armpy_batch_rows_bucket")
            if family and family.values and family.values[-1].number == num_batches:
                return
            assert time.monotonic() < end_s
            time.sleep(0.001)

    instance.execute([request([1, 2]), request([3, 4])])
    wait_for(1)
    instance.execute([request([1, 2])])
    wait_for(2)
    (requests,) = families["armpy_requests"].values
    assert requests.number == 3
    assert requests.labels == {"model": "m", "version": "1", "code": "OK"}
    assert families["armpy_batch_rows_sum"].values[0].number == 3
    assert families["armpy_batch_rows_count"].values[0].number == 2
    buckets = {
        bucket.labels["le"]: bucket.number for bucket in families["armpy_batch_rows_bucket"].values
    }
    assert (buckets["1"], buckets["2"], buckets["+Inf"]) == (1, 2, 2)


def test_files_that_others_can_write_are_used_without_their_code_alone(
    adapter: ModuleType, tmp_path: Path
) -> None:
    for code in ("trusted", "never"):
        settings = InstanceSettings("", {"code": code})
        with Model(doubling(1, 2)) as model:
            export_model(model, tmp_path, TritonExport(TritonOptions("m"), settings, force=True))
        (tmp_path / "m" / "1" / "model.armpy").chmod(0o666)
        instance = adapter.TritonModel()
        if code == "trusted":
            with pytest.raises(ParserError):
                instance.initialize(arguments(tmp_path, 0))
        else:
            instance.initialize(arguments(tmp_path, 0))
            (answer,) = instance.execute([request([1, 2])])
            assert values(answer) == [[2, 4]]
            instance.finalize()
