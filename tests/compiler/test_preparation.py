"""Preparation: the requests that backends receive for a part."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest

from armpy.backend import (
    IBackendInternal,
)
from armpy.compiler import OptimizerOptions, optimize_graph
from armpy.compiler.compile_timeout import in_time, next_deadline, prepared_by, time_per_part
from armpy.errors import (
    BackendCapabilityError,
    BackendError,
    InvalidArgumentError,
    PreparationTimeoutError,
    QueueFullError,
)
from armpy.execution import NetworkProperties
from armpy.model import Model
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import ScriptedBackend, Step, raises, sleeps, waits
from armpy_testing.models.networks import diamond, floats, placement_of

X = floats(-1, 0, 2, 5)
EXPECTED = floats(1, 1, 9, 21)  # 4 relu(x) + 1


def load(backend: IBackendInternal, **options: object) -> Model:
    optimizer = OptimizerOptions(**options)  # type: ignore[arg-type]  # each test's own
    return Model(diamond(), runtime_of(backend), properties=NetworkProperties(optimizer=optimizer))


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_preparation_without_time_is_refused(timeout: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"preparation_timeout_s: .*no time"):
        OptimizerOptions(preparation_timeout_s=timeout)


def test_a_preference_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"preference: .*Expected 'preference', 'npu', "):
        OptimizerOptions(preference="quick")  # type: ignore[arg-type]  # the test's point


def scripted(step: Step, method: str = "optimize") -> ScriptedBackend:
    return ScriptedBackend("Npu", {method: step}, compiles=True)


def test_a_preparation_that_fails_moves_its_part_with_the_reason() -> None:
    model = load(scripted(raises(BackendError("no units left"))))
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    reasons = {(r.backend, r.code, r.text) for r in placement_of(model).refusals}
    assert reasons == {("Npu", "compilation", "Npu / optimize_subgraph_view: no units left.")}
    np.testing.assert_array_equal(model(X), EXPECTED)


@pytest.mark.parametrize("method", ["optimize", "create_workload"])
def test_a_preparation_that_takes_too_long_moves_its_part_with_the_reason(method: str) -> None:
    hanging = threading.Event()
    backend = scripted(waits(hanging, 60), method)
    started = time.perf_counter()
    model = load(backend, preparation_timeout_s=0.2)
    assert time.perf_counter() - started < 30, "the application waited for the hanging backend"
    hanging.set()  # what the backend answers now is too late
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    (reason,) = {r.text for r in placement_of(model).refusals if r.backend == "Npu"}
    # What was left of the time when it was asked.
    text = r"takes too long and is no longer waited for\. Expected an answer within ([.\d]+) s"
    limit = re.search(text, reason)
    assert limit
    assert 0 < float(limit[1]) <= 0.2
    np.testing.assert_array_equal(model(X), EXPECTED)


def test_a_preparation_in_time_is_used() -> None:
    model = load(scripted(sleeps(0.01)), preparation_timeout_s=60.0)
    assert placement_of(model).layers_by_backend == {"Npu": 4}
    np.testing.assert_array_equal(model(X), EXPECTED)


def test_where_there_is_no_next_backend_the_error_says_why() -> None:
    optimizer = OptimizerOptions(preparation_timeout_s=0.1)
    with pytest.raises(BackendCapabilityError, match=r"takes too long") as raised:
        optimize_graph(diamond(), [scripted(sleeps(5))], optimizer)
    assert isinstance(raised.value.__cause__, PreparationTimeoutError)


def test_a_deadline_that_has_passed_asks_no_backend() -> None:
    def prepare() -> None:
        raise AssertionError("it was asked")

    with pytest.raises(PreparationTimeoutError, match=r"Npu: the deadline has passed"):
        in_time("Npu", time.perf_counter() - 1, prepare)


def test_the_nearer_of_timeout_and_deadline_counts() -> None:
    now = time.perf_counter()
    assert next_deadline() is None
    with prepared_by(now + 100):
        assert next_deadline() == now + 100
        with time_per_part(200):
            assert next_deadline() == now + 100
        with time_per_part(50):
            assert now + 50 <= (next_deadline() or 0) <= time.perf_counter() + 50


def test_a_deadline_without_a_thread_to_keep_it_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(
        QueueFullError, match="no thread can be started to prepare within the deadline"
    ):
        in_time("Npu", time.perf_counter() + 9, lambda: 1)
