"""Health of served models: what cannot answer is not ready, and comes back by itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from armpy import (
    DataType,
    DeadObjectError,
    InvalidArgumentError,
    IsolationLimits,
    Model,
    Network,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    ops,
)
from armpy.compiler.placement import LateCompilation
from armpy_serving import ServedModel, health
from armpy_serving.health import HealthRules, ModelHealth, run_ahead

X = {"x": np.ones((1, 2), np.float32)}
ADD = ops.ElementwiseBinary(ops.BinaryOperation.ADD)


def doubling() -> Network:
    """Doubles and negates."""
    net = Network()
    value = net.input("x", TensorInfo((1, 2), DataType.FLOAT32))
    value = net.add(ADD, value, value, name="double")
    net.output("y", net.add(ops.ElementwiseUnary(ops.UnaryOperation.NEG), value, name="negate"))
    return net


@pytest.fixture
def model() -> Iterator[Model]:
    with Runtime(RuntimeOptions(["CpuRef"])) as runtime, Model(doubling(), runtime) as opened:
        yield opened


def failing(error: Exception) -> Callable[..., object]:
    """A function that raises."""

    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def fail_once(served: ServedModel, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have one request fail."""
    with monkeypatch.context() as patch:
        patch.setattr(Model, "run", failing(error))
        with pytest.raises(type(error)):
            served.run(X)


def value_of(served: ServedModel, name: str, **labels: str) -> float:
    """Value of the metric with these labels."""
    (value,) = [
        metric.value
        for metric in served.metrics.metrics()
        if metric.name == name and labels.items() <= metric.labels.items()
    ]
    return value


def test_a_fault_of_one_request_is_no_fault_of_the_model(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ServedModel(model, "m")
    fail_once(served, monkeypatch, DeadObjectError("gone"))
    assert served.health.problem(20) == ""
    assert value_of(served, "armpy_ready") == 1


def test_a_model_whose_trial_fails_is_not_ready_until_one_succeeds(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ServedModel(model, "m")
    monkeypatch.setattr(Model, "start", failing(DeadObjectError("still gone")))
    fail_once(served, monkeypatch, DeadObjectError("gone"))
    assert "a trial has failed: still gone" in served.health.problem(20)
    assert value_of(served, "armpy_ready") == 0
    monkeypatch.undo()
    assert served.health.problem(20) == ""


def test_an_answer_shows_that_the_model_is_ready_again(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ServedModel(model, "m")
    fail_once(served, monkeypatch, DeadObjectError("gone"))
    served.run(X)
    monkeypatch.setattr(Model, "start", failing(AssertionError("no trial is needed")))
    assert served.health.problem() == ""


def test_an_error_of_the_client_is_no_fault(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    served = ServedModel(model, "m")
    monkeypatch.setattr(Model, "start", failing(AssertionError("no trial is needed")))
    fail_once(served, monkeypatch, InvalidArgumentError("wrong"))
    assert served.health.problem() == ""


def test_a_model_that_was_idle_is_tried(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "IDLE_S", -1.0)
    monkeypatch.setattr(Model, "start", failing(DeadObjectError("gone while idle")))
    assert "gone while idle" in ModelHealth(model).problem(20)


def test_a_request_that_hangs_makes_the_model_unready_while_it_runs(model: Model) -> None:
    watching = ModelHealth(model, HealthRules(hang_s=0.01))
    with watching.watched():
        time.sleep(0.05)
        assert "a request has been running for" in watching.problem()
    assert watching.problem() == ""


def test_a_trial_that_does_not_end_is_not_waited_for(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending: Future[object] = Future()
    monkeypatch.setattr(Model, "start", lambda *_, **__: pending)
    served = ServedModel(model, "m")
    fail_once(served, monkeypatch, DeadObjectError("gone"))
    assert "a request has failed: gone" in served.health.problem(0.01)
    pending.set_exception(DeadObjectError("hung"))
    monkeypatch.setattr(Model, "start", failing(DeadObjectError("hung again")))
    assert "hung again" in served.health.problem(0.01)


def test_a_model_with_state_is_not_tried(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "has_state", lambda _: True)
    monkeypatch.setattr(Model, "start", failing(AssertionError("it would change the state")))
    served = ServedModel(model, "m")
    fail_once(served, monkeypatch, DeadObjectError("gone"))
    assert "gone" in served.health.problem()
    monkeypatch.setattr(health, "STATEFUL_RETRY_S", -1.0)
    assert served.health.problem() == ""


def test_a_model_is_run_ahead_of_requests_unless_it_has_state(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_ahead(model)
    monkeypatch.setattr(Model, "run", failing(DeadObjectError("gone")))
    with pytest.raises(DeadObjectError, match="gone"):
        run_ahead(model)
    monkeypatch.setattr(health, "has_state", lambda _: True)
    assert not run_ahead(model)


def test_a_closed_model_is_not_ready(model: Model) -> None:
    served = ServedModel(model, "m")
    model.close()
    assert served.health.problem() == "the model is closed"
    assert value_of(served, "armpy_ready") == 0


@pytest.mark.parametrize(
    ("needed", "state", "is_ready"),
    [
        (True, "pending", False),
        (True, "failed", False),
        (True, "done", True),
        (False, "pending", True),
    ],
)
def test_readiness_waits_for_compiled_code_if_that_is_asked_for(
    model: Model, monkeypatch: pytest.MonkeyPatch, needed: bool, state: str, is_ready: bool
) -> None:
    compilation = LateCompilation(state, ("NumbaAcc",), "elsewhere", 2, 1.0, "why")
    placement = SimpleNamespace(compilation=compilation)
    monkeypatch.setattr(Model, "placement", placement)
    problem = ModelHealth(model, HealthRules(needs_compiled=needed)).problem()
    assert (problem == "") is is_ready
    assert is_ready or "NumbaAcc" in problem


def test_metrics_have_the_intended_backend_and_those_that_run_layers() -> None:
    options = RuntimeOptions(["NumbaAcc", "CpuRef"], affinity={"negate": "CpuRef"})
    with Runtime(options) as runtime, Model(doubling(), runtime) as opened:
        served = ServedModel(opened, "m")
        assert value_of(served, "armpy_backend_share", backend="CpuRef") == 0.5
        assert value_of(served, "armpy_backend_share", backend="NumbaAcc") == 0.5
        assert value_of(served, "armpy_fallback_share", intended="NumbaAcc") == 0.5


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
def test_a_backend_in_quarantine_is_not_ready_and_comes_back() -> None:
    limits = IsolationLimits(max_failures=1, quarantine_s=2.0)
    options = RuntimeOptions(["CpuRef"], isolation="process", isolation_limits=limits)
    with Runtime(options) as runtime, Model(doubling(), runtime) as opened:
        served = ServedModel(opened, "m")
        served.run(X)
        pid = runtime.isolation["CpuRef"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(DeadObjectError, match="SIGKILL"):
            served.run(X)
        assert "quarantine" in served.health.problem(5)
        assert value_of(served, "armpy_ready") == 0
        assert value_of(served, "armpy_backend_failures", backend="CpuRef") == 1
        assert value_of(served, "armpy_backend_quarantine_seconds", backend="CpuRef") > 0
        time.sleep(2.1)
        assert served.health.problem(20) == ""
        assert value_of(served, "armpy_ready") == 1
