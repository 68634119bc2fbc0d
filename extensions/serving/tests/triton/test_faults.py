"""Faults under the load of 32 clients: nothing wrong is answered, and no more lost than must be."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo, ops
from armpy_serving.triton import InstanceSettings, TritonExport, TritonOptions, export_model
from armpy_testing.effort import effort

from .clients import LEAST, Outcome, infer, load_it
from .conftest import Start

SECONDS = effort(4.0)

WIDTH = 16


def times(factor: float, *shape: int | None) -> Model:
    """A model that multiplies its input."""
    net = Network()
    first = tuple(n or 1 for n in shape)
    value = net.input("x", TensorInfo(shape, DataType.FLOAT32), default_shape=first)
    constant = net.constant(np.array(factor, np.float32))
    net.output("y", net.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), value, constant))
    return Model(net)


def put(
    repository: Path, model: Model, settings: InstanceSettings | None = None, **options: Any
) -> None:
    """Put a model into a repository, in place of the present one."""
    triton_options = TritonOptions("m", **{"max_batch": 8, **options})
    with model:
        export = TritonExport(triton_options, settings or InstanceSettings(""), force=True)
        export_model(model, repository, export)


def row(number: int, turn: int) -> np.ndarray[Any, Any]:
    """An input that no other request has."""
    return np.full((1 + turn % 3, WIDTH), number * 1000.0 + turn % 997, np.float32)


def doubles(client: Any, number: int, turn: int) -> bool:
    """Ask for the double of a number of one's own."""
    x = row(number, turn)
    answer = infer(client, "m", x)
    return bool(np.array_equal(answer, 2 * x))


def assert_no_wrong(outcome: Outcome) -> None:
    """No answer is wrong, and enough are right."""
    assert outcome.wrong == []
    assert outcome.right >= LEAST, outcome


def test_killed_instance_loses_its_own_batches_until_it_is_loaded_again(
    start: Start, tmp_path: Path
) -> None:
    from tritonclient import http

    repository = tmp_path / "repository"
    put(repository, times(2, None, WIDTH), instances=2)
    server = start(repository, "--model-control-mode=explicit", "--load-model=m")
    seconds, loaded_after_s = max(SECONDS, 6.0), max(SECONDS, 6.0) / 2
    begin_s = time.monotonic()
    loaded_s = 0.0
    did: list[str] = []
    with http.InferenceServerClient(server.http, network_timeout=60) as control:

        def kill() -> None:
            nonlocal loaded_s
            time.sleep(0.5)
            if not did:
                os.kill(server.instances()[0], signal.SIGKILL)
                did.append("killed")
            elif len(did) == 1 and time.monotonic() - begin_s > loaded_after_s:
                # An unchanged model is not loaded again.
                (repository / "m" / "1" / "model.py").touch()
                control.load_model("m")
                did.append("loaded")
                loaded_s = time.monotonic() - begin_s

        outcome = load_it(server.grpc, seconds, doubles, kill, lambda _: len(did) == 2)
    assert_no_wrong(outcome)
    assert did == ["killed", "loaded"]
    # The server never starts an instance again: it gives a dead one a batch a second, and says so
    # after that second. A load takes some seconds itself.
    assert sum(outcome.errors.values()) <= 8 * (loaded_s + 10), outcome.errors
    assert all("is not healthy" in text for text in outcome.errors), outcome.errors
    assert not load_it(server.grpc, 2.0, doubles).errors


@pytest.mark.parametrize("mode", ["explicit", "poll"])
def test_replaced_model_loses_nothing(start: Start, tmp_path: Path, mode: str) -> None:
    from tritonclient import http

    repository = tmp_path / "repository"
    put(repository, times(2, None, WIDTH))
    options = {
        "explicit": ["--model-control-mode=explicit", "--load-model=m"],
        "poll": ["--model-control-mode=poll", "--repository-poll-secs=1"],
    }[mode]
    server = start(repository, *options)
    time.sleep(2.0)
    assert server.text().count("loading: m:1") == 1, "loading changes the polled folder"
    factors = [2.0]
    seen = set()

    def scaled(client: Any, number: int, turn: int) -> bool:
        x = row(number, turn) + 1
        answer = infer(client, "m", x)
        factor = float(answer[0, 0] / x[0, 0])
        seen.add(factor)
        return factor in factors and np.array_equal(answer, np.float32(factor) * x)

    with http.InferenceServerClient(server.http, network_timeout=60) as control:

        def replace() -> None:
            time.sleep(1.0)
            factors.append(factors[-1] * 2 if factors[-1] < 1024 else 2.0)
            put(repository, times(factors[-1], None, WIDTH))
            if mode == "explicit":
                control.load_model("m")

        outcome = load_it(server.grpc, SECONDS, scaled, replace, lambda _: len(seen) > 1)
    assert_no_wrong(outcome)
    assert not outcome.errors, outcome.errors
