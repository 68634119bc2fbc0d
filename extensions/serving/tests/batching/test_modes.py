"""Modes of a batcher: direct calls, and which sizes are prepared when."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model, Network
from armpy.errors import BackendError, InvalidArgumentError, QueueFullError
from armpy.execution import LoadedNetwork
from armpy.ops import FullyConnected
from armpy_serving import Batcher
from armpy_testing.models.networks import ADD, f32, floats


def plus_one(*shape: int | None) -> Model:
    """``y = x + 1`` on CpuRef."""
    net = Network("plus one")
    net.output("y", net.add(ADD, net.input("x", f32(*shape)), net.constant(np.float32(1))))
    return Model(net, armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])))


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.001)


@pytest.fixture
def model() -> Iterator[Model]:
    with plus_one(None, 3) as opened:
        yield opened


class Watched:
    """A model whose executions are recorded, and wait until released."""

    def __init__(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_run = threading.Event()
        self.entered = threading.Event()
        self.threads: list[int] = []
        self._run = model.run
        monkeypatch.setattr(model, "run", self.run)

    def run(self, inputs: Mapping[str, Any], *others: Any) -> dict[str, Any]:
        self.threads.append(threading.get_ident())
        self.entered.set()
        assert self.may_run.wait(30)
        return self._run(inputs, *others)


@pytest.fixture
def watched(model: Model, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(model, monkeypatch)


def direct(model: Model, **options: Any) -> Batcher:
    """A batcher that runs each item by itself."""
    return Batcher(model, mode="direct", **options)


def test_a_direct_item_runs_in_its_caller_s_thread(model: Model, watched: Watched) -> None:
    watched.may_run.set()
    with direct(model) as batcher:
        assert batcher.run({"x": floats(1, 2, 3)})["y"].tolist() == [2, 3, 4]
        assert batcher.run({"x": floats(1, 2, 3)[None]})["y"].tolist() == [[2, 3, 4]]
        assert watched.threads == [threading.get_ident()] * 2
        batcher.submit({"x": floats(1, 2, 3)}).result(30)
        assert watched.threads[2] != threading.get_ident()
        statistics = batcher.statistics
    assert (statistics.items, statistics.direct, statistics.mean_batch) == (3, 3, 1.0)


def test_items_are_answered_while_sizes_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, may_end = LoadedNetwork.prepare_together, threading.Event()

    def slowly(network: LoadedNetwork, several: Any) -> int:
        assert may_end.wait(30)
        return prepare(network, several)

    monkeypatch.setattr(LoadedNetwork, "prepare_together", slowly)
    with plus_one(None, None) as model, Batcher(model, 4, 60_000.0) as batcher:
        futures = [batcher.submit({"x": floats(i, i, i)}) for i in range(4)]
        assert [future.result(30)["y"][0] for future in futures] == [1, 2, 3, 4]
        assert batcher.statistics.direct == 4
        may_end.set()
        until(lambda: batcher.statistics.sizes == (1, 2, 4))
        futures = [batcher.submit({"x": floats(i, i, i)}) for i in range(4)]
        assert [future.result(30)["y"][0] for future in futures] == [1, 2, 3, 4]
        assert batcher.statistics.direct == 4


def test_sizes_that_cannot_be_prepared_are_reported_and_run_directly(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise BackendError("the compiler is on strike")

    monkeypatch.setattr(LoadedNetwork, "prepare_together", fail)
    with plus_one(None, None) as any_rows, Batcher(any_rows, 2, 60_000.0) as batcher:
        for _ in range(2):
            futures = [batcher.submit({"x": floats(i, i, i)}) for i in range(2)]
            assert [future.result(30)["y"][0] for future in futures] == [1, 2]
            until(lambda: bool(batcher.statistics.problem))
        assert "on strike" in batcher.statistics.problem
        assert batcher.statistics.direct == 4
    with pytest.raises(BackendError, match="on strike"):
        Batcher(model)


def test_direct_calls_are_refused_where_too_many_wait(model: Model, watched: Watched) -> None:
    with (
        direct(model, max_waiting=1, when_full="error") as batcher,
        ThreadPoolExecutor(8) as callers,
    ):
        inside = [
            callers.submit(batcher.run, {"x": floats(i, 0, 0)}) for i in range(batcher._most_direct)
        ]
        while len(batcher._direct.running) < batcher._most_direct:
            assert watched.entered.wait(30)
        with pytest.raises(QueueFullError, match="fewer than 1"):
            batcher.run({"x": floats(9, 9, 9)})
        watched.may_run.set()
        assert [future.result(30)["y"][0] for future in inside] == [
            i + 1.0 for i in range(len(inside))
        ]
        assert batcher.statistics.refused == 1


def test_closing_waits_for_direct_calls(model: Model, watched: Watched) -> None:
    batcher = direct(model)
    with ThreadPoolExecutor(2) as callers:
        running = callers.submit(batcher.run, {"x": floats(1, 1, 1)})
        assert watched.entered.wait(30)
        closing = callers.submit(batcher.close)
        assert not closing.done()
        watched.may_run.set()
        closing.result(30)
        assert running.result(0)["y"][0] == 2
    with pytest.raises(InvalidArgumentError, match="the batcher is closed"):
        batcher.run({"x": floats(1, 1, 1)})


def test_direct_and_batched_answers_are_those_of_the_model_alone() -> None:
    random = np.random.default_rng(3)
    net = Network("dense")
    x = net.input("x", f32(1, 48))
    weights = random.normal(size=(33, 48)).astype(np.float32)
    net.output("y", net.add(FullyConnected(), x, net.constant(weights)))
    items = random.normal(size=(8, 48)).astype(np.float32)
    with Model(net) as model:
        alone = np.stack([np.asarray(model(item[None]))[0] for item in items])
        for mode in ("direct", "batch"):
            with Batcher(model, 4, 5, mode=mode) as batcher:
                futures = [batcher.submit({"x": item}) for item in items]
                answers = np.stack([future.result(60)["y"] for future in futures])
            np.testing.assert_array_equal(answers, alone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_sizes_are_prepared_runs_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end = threading.Event()

    def slowly(network: LoadedNetwork, several: Any) -> int:
        assert may_end.wait(30)
        return len(several)

    monkeypatch.setattr(LoadedNetwork, "prepare_together", slowly)
    with plus_one(None, None) as model, Batcher(model, 2, 60_000.0) as batcher:
        for future in [batcher.submit({"x": floats(1, 2, 3)}) for _ in range(2)]:
            future.result(30)
        child = os.fork()
        if child == 0:
            outcome = 1
            try:
                futures = [batcher.submit({"x": floats(1, 2, 3)}) for _ in range(2)]
                is_answered = [future.result(30)["y"][0] for future in futures] == [2, 2]
                is_reported = "forked" in batcher.statistics.problem
                outcome = 0 if is_answered and is_reported else 2
                batcher.close()
            finally:
                os._exit(outcome)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        may_end.set()
