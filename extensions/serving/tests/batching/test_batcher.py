"""Batcher: assignment of answers, waiting, refusals, and ends."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model, Network
from armpy.errors import (
    ExecutionCancelledError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    QueueFullError,
)
from armpy.ops import FullyConnected, Reduce, ReduceOperation, Reshape, Transpose
from armpy_serving import Batcher
from armpy_testing.models.networks import ADD, f32, floats

LONG_MS = 60_000.0


def plus_one(*shape: int | None, is_two: bool = False) -> Network:
    """``y = x + 1``, or ``y = x + other``."""
    net = Network("plus one")
    x = net.input("x", f32(*shape))
    other = net.input("other", f32(*shape)) if is_two else net.constant(np.float32(1))
    net.output("y", net.add(ADD, x, other))
    return net


def on_reference(network: Network) -> Model:
    """A model that needs no compiler."""
    return Model(network, armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])))


@pytest.fixture
def model() -> Iterator[Model]:
    with on_reference(plus_one(None, 3)) as reference:
        yield reference


class Gate:
    """Stands before a model's executions: counts them, and can hold or spoil them."""

    def __init__(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()
        self.batches: list[np.ndarray] = []
        self._run = model.run
        monkeypatch.setattr(model, "run", self.run)

    def run(self, inputs: Mapping[str, Any], *others: Any) -> dict[str, Any]:
        self.batches.append(inputs["x"].copy())
        self.entered.set()
        assert self.opened.wait(30)
        if (inputs["x"] == 666).any():
            raise InvalidArgumentError("a devil is in the batch")
        return self._run(inputs, *others)


@pytest.fixture
def gate(model: Model, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(model, monkeypatch)


def hold(batcher: Batcher, gate: Gate) -> Future[dict[str, Any]]:
    """Keep the only worker busy with an item."""
    future = batcher.submit({"x": floats(0, 0, 0)})
    assert gate.entered.wait(30)
    return future


def test_every_caller_gets_the_answer_to_its_own_item(model: Model) -> None:
    def caller(number: int) -> bool:
        random = np.random.default_rng(number)
        for _ in range(60):
            x = random.normal(size=3).astype(np.float32)
            if not np.array_equal(batcher.run({"x": x})["y"], x + np.float32(1)):
                return False
        return True

    with Batcher(model, 5, 1) as batcher, ThreadPoolExecutor(8) as callers:
        assert all(callers.map(caller, range(8)))
        statistics = batcher.statistics
    assert statistics.items == 8 * 60
    assert statistics.batches < statistics.items
    assert statistics.mean_batch > 1


def test_workers_have_not_the_context_of_the_first_caller(model: Model, gate: Gate) -> None:
    # Free-threaded Pythons let threads inherit it.
    caller: ContextVar[str] = ContextVar("caller", default="")
    context, seen = copy_context(), list[str]()
    context.run(caller.set, "first")
    with Batcher(model, 5, 1) as batcher:
        future = context.run(batcher.submit, {"x": floats(0, 0, 0)})
        future.add_done_callback(lambda _: seen.append(caller.get()))
        gate.opened.set()
    assert seen == [""]


def test_items_are_what_they_were_when_they_were_submitted(model: Model, gate: Gate) -> None:
    with Batcher(model, 4, 0) as batcher:
        hold(batcher, gate)
        x, futures = np.empty(3, np.float32), []
        for number in range(4):
            x[...] = number
            futures.append(batcher.submit({"x": x}))
        x[...] = -1
        gate.opened.set()
        assert [future.result(30)["y"].tolist() for future in futures] == [
            [number + 1.0] * 3 for number in range(4)
        ]


def test_an_item_with_a_batch_dimension_gets_an_answer_with_one(model: Model) -> None:
    with Batcher(model, 2, 0) as batcher:
        assert batcher.run({"x": floats(1, 2, 3)[None]})["y"].tolist() == [[2, 3, 4]]
        assert batcher.run({"x": floats(1, 2, 3)})["y"].tolist() == [2, 3, 4]
        assert batcher(floats(1, 2, 3)).tolist() == [2, 3, 4]  # type: ignore[union-attr]


def test_a_full_batch_does_not_wait_for_more(model: Model) -> None:
    with Batcher(model, 3, LONG_MS) as batcher:
        futures = [batcher.submit({"x": floats(i, 0, 0)}) for i in range(3)]
        assert [future.result(30)["y"][0] for future in futures] == [1, 2, 3]
        assert batcher.statistics.batches == 1


def test_an_item_is_run_alone_when_it_has_waited_for_others(model: Model) -> None:
    with Batcher(model, 8, 1) as batcher:
        assert batcher.run({"x": floats(1, 2, 3)})["y"].tolist() == [2, 3, 4]
        assert batcher.statistics.padded_rows == 0


def test_batches_are_filled_up_to_the_sizes_that_are_prepared(model: Model, gate: Gate) -> None:
    with Batcher(model, 8, 0, sizes=(1, 6, 8)) as batcher:
        hold(batcher, gate)
        futures = [batcher.submit({"x": floats(i, i, i)}) for i in (3, 4, 5)]
        gate.opened.set()
        assert [f.result(30)["y"][0] for f in futures] == [4, 5, 6]
    assert gate.batches[1][:, 0].tolist() == [3, 4, 5, 3, 3, 3]
    assert batcher.statistics.padded_rows == 3


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": np.zeros(4, np.float32)}, r"expected \(3,\) or \(1, 3\); got \(4,\)"),
        ({"x": np.zeros((2, 3), np.float32)}, "one by one"),
        ({"x": np.zeros(3)}, "wrong type"),
        ({"z": np.zeros(3, np.float32)}, "missing 'x'; unknown 'z'"),
        ({"x": {"a": 1}}, "input 'x'"),
        ([1, 2], "not given by name"),
    ],
)
def test_a_wrong_item_is_refused_before_it_is_in_a_batch(
    model: Model, gate: Gate, inputs: Any, message: str
) -> None:
    gate.opened.set()
    with Batcher(model, 2, 0) as batcher:
        with pytest.raises(InvalidArgumentError, match=f"(?i){message}"):
            batcher.run(inputs)
        assert not gate.batches
        assert batcher.run({"x": floats(0, 0, 0)})["y"].tolist() == [1, 1, 1]


def test_an_error_reaches_the_item_that_causes_it_and_no_other(model: Model, gate: Gate) -> None:
    with Batcher(model, 4, 0) as batcher:
        hold(batcher, gate)
        futures = [batcher.submit({"x": floats(i, i, i)}) for i in (1, 666, 2, 667)]
        gate.opened.set()
        with pytest.raises(InvalidArgumentError, match="devil"):
            futures[1].result(30)
        assert [futures[i].result(30)["y"][0] for i in (0, 2, 3)] == [2, 3, 668]
        assert batcher.statistics.failed == 1


def test_an_item_without_room_is_refused_where_that_is_asked_for(model: Model, gate: Gate) -> None:
    with Batcher(model, 2, LONG_MS, max_waiting=1, when_full="error") as batcher:
        with Batcher(model, 1, 0, max_waiting=1, when_full="error") as small:
            hold(small, gate)
            small.submit({"x": floats(1, 1, 1)})
            with pytest.raises(QueueFullError, match="fewer than 1"):
                small.submit({"x": floats(2, 2, 2)})
            assert small.statistics.refused == 1
            gate.opened.set()
        batcher.close(drops=True)


def test_a_caller_waits_for_room_and_no_longer_than_its_deadline(model: Model, gate: Gate) -> None:
    with Batcher(model, 1, 0, max_waiting=1) as batcher, ThreadPoolExecutor(1) as callers:
        hold(batcher, gate)
        inside = batcher.submit({"x": floats(1, 1, 1)})
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            batcher.submit({"x": floats(2, 2, 2)}, deadline_s=0.01)
        outside = callers.submit(batcher.run, {"x": floats(3, 3, 3)})
        gate.opened.set()
        assert inside.result(30)["y"][0] == 2
        assert outside.result(30)["y"][0] == 4
        assert batcher.statistics.expired == 1


def test_an_item_ends_at_its_deadline_while_it_waits_and_while_it_runs(
    model: Model, gate: Gate
) -> None:
    with Batcher(model, 1, 0) as batcher:
        running = batcher.submit({"x": floats(0, 0, 0)}, deadline_s=0.5)
        assert gate.entered.wait(30)
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            batcher.run({"x": floats(1, 1, 1)}, deadline_s=0.01)
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            running.result(30)
        gate.opened.set()
        assert batcher.run({"x": floats(2, 2, 2)})["y"][0] == 3
        assert batcher.statistics.expired == 2
    assert [batch[0, 0] for batch in gate.batches] == [0, 2]


def test_a_cancelled_item_is_not_run_and_gives_its_room_back(model: Model, gate: Gate) -> None:
    with Batcher(model, 1, 0, max_waiting=1, when_full="error") as batcher:
        hold(batcher, gate)
        given_up = batcher.submit({"x": floats(1, 1, 1)})
        assert given_up.cancel()
        future = batcher.submit({"x": floats(2, 2, 2)})
        gate.opened.set()
        assert future.result(30)["y"][0] == 3
    assert [batch[0, 0] for batch in gate.batches] == [0, 2]


def test_items_of_other_shapes_are_batches_of_their_own() -> None:
    with on_reference(plus_one(None, None)) as model, Batcher(model, 4, 5) as batcher:
        futures = [
            batcher.submit({"x": np.full(length, length, np.float32)})
            for length in (2, 3, 2, 3, 5, 2)
        ]
        answers = [future.result(60)["y"].tolist() for future in futures]
    assert answers == [[n + 1.0] * n for n in (2, 3, 2, 3, 5, 2)]


def test_an_item_of_several_inputs_gives_all_of_them_with_a_batch_or_without() -> None:
    with on_reference(plus_one(None, 2, is_two=True)) as model, Batcher(model, 2, 0) as batcher:
        assert batcher.run({"x": floats(1, 2), "other": floats(3, 4)})["y"].tolist() == [4, 6]
        with pytest.raises(InvalidArgumentError, match="others none"):
            batcher.run({"x": floats(1, 2), "other": floats(3, 4)[None]})
        with pytest.raises(InvalidArgumentError, match="Expected 2: x, other; got 1"):
            batcher(floats(1, 2))


def test_closing_waits_for_what_is_there_and_takes_nothing_more(model: Model, gate: Gate) -> None:
    batcher = Batcher(model, 4, LONG_MS)
    futures = [batcher.submit({"x": floats(i, i, i)}) for i in range(2)]
    gate.opened.set()
    batcher.close()
    assert [future.result(0)["y"][0] for future in futures] == [1, 2]
    with pytest.raises(InvalidArgumentError, match="the batcher is closed"):
        batcher.run({"x": floats(0, 0, 0)})
    assert not model.is_closed
    batcher.close()


def test_closing_can_give_up_what_has_not_begun(model: Model, gate: Gate) -> None:
    batcher = Batcher(model, 1, 0, max_waiting=1)
    running = hold(batcher, gate)
    waiting = batcher.submit({"x": floats(1, 1, 1)})
    with ThreadPoolExecutor(1) as callers:
        outside = callers.submit(batcher.run, {"x": floats(2, 2, 2)})
        while not batcher._items._outside:
            pass
        gate.opened.set()
        batcher.close(drops=True)
        assert running.result(30)["y"][0] == 1
        with pytest.raises((InvalidArgumentError, ExecutionCancelledError)):
            outside.result(30)
    if not waiting.cancelled():  # it may have begun before
        assert waiting.result()["y"][0] == 2
    else:
        with pytest.raises(CancelledError):
            waiting.result()


def test_items_of_an_event_loop_are_run_together(model: Model) -> None:
    async def several() -> list[float]:
        async with Batcher(model, 4, LONG_MS) as batcher:
            answers = await asyncio.gather(
                *(batcher.run_async({"x": floats(i, i, i)}) for i in range(8))
            )
            assert batcher.statistics.batches == 2
        return [float(answer["y"][0]) for answer in answers]

    assert asyncio.run(several()) == [float(i + 1) for i in range(8)]


def test_an_event_loop_goes_on_while_an_item_waits_for_room(model: Model, gate: Gate) -> None:
    async def several() -> None:
        async with Batcher(model, 1, 0, max_waiting=1) as batcher:
            tasks = [
                asyncio.create_task(batcher.run_async({"x": floats(i, i, i)})) for i in range(5)
            ]
            await asyncio.sleep(0.01)
            tasks[4].cancel()
            with pytest.raises(ExecutionTimeoutError, match="deadline"):
                await batcher.run_async({"x": floats(9, 9, 9)}, deadline_s=0.01)
            gate.opened.set()
            done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [float(answer["y"][0]) for answer in done[:4]] == [1, 2, 3, 4]  # type: ignore[index]
        assert isinstance(done[4], asyncio.CancelledError)

    asyncio.run(several())
    assert 9 not in [batch[0, 0] for batch in gate.batches]


def test_a_batch_that_the_file_has_fixed_is_opened() -> None:
    net = Network("fixed")
    x = net.input("x", f32(1, 2, 2))
    flat = net.add(Reshape((1, 4)), x, name="flat")
    weights = net.constant(np.arange(8, dtype=np.float32).reshape(2, 4))
    net.output("y", net.add(FullyConnected(), flat, weights))
    items = np.random.default_rng(1).normal(size=(3, 2, 2)).astype(np.float32)
    with on_reference(net) as model:
        with Batcher(model, 3, LONG_MS) as batcher:
            futures = [batcher.submit({"x": item}) for item in items]
            answers = np.stack([future.result(60)["y"] for future in futures])
        np.testing.assert_allclose(
            answers, items.reshape(3, 4) @ np.arange(8).reshape(2, 4).T, 1e-5
        )
        assert model(items[:1]).shape == (1, 2)  # type: ignore[union-attr]


def _mixing() -> Network:
    net = Network("mixing")
    x = net.input("x", f32(1, 4))
    net.output("y", net.add(Reshape((4, 1)), x, name="turned"))
    return net


def _summed() -> Network:
    net = Network("summed")
    net.output("y", net.add(Reduce(ReduceOperation.SUM, (0,)), net.input("x", f32(None, 4))))
    return net


def _stateful() -> Network:
    net = Network("stateful")
    x = net.input("x", f32(None, 4))
    total = net.variable("total", f32(1, 4))
    net.assign(total, net.add(ADD, total, net.constant(np.float32(1))))
    net.output("y", net.add(ADD, x, total))
    return net


def _scalar() -> Network:
    net = Network("scalar")
    net.output("y", net.add(ADD, net.input("x", f32()), net.constant(np.float32(1))))
    return net


def _turned() -> Network:
    net = Network("turned")
    net.output("y", net.add(Transpose((1, 0)), net.input("x", f32(None, 4))))
    return net


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (_mixing, "cannot be changed: .*Reshape 'turned'"),
        (_summed, "output 'y' has not as many rows"),
        (_stateful, "state, which would go from caller to caller"),
        (_scalar, "input 'x' has no batch dimension"),
        (_turned, "output 'y' has not as many rows"),
    ],
)
def test_a_model_whose_items_cannot_be_run_together_is_refused(network: Any, message: str) -> None:
    with on_reference(network()) as model, pytest.raises(InvalidArgumentError, match=message):
        Batcher(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "auto"}, "'batch' or 'direct'"),
        ({"max_batch": 0}, "max_batch has a wrong type or value"),
        ({"max_batch": True}, "max_batch"),
        ({"max_wait_ms": -1}, "max_wait_ms"),
        ({"max_wait_ms": float("nan")}, "max_wait_ms"),
        ({"max_waiting": 0}, "max_waiting"),
        ({"when_full": "drop"}, "'wait' or 'error'"),
        ({"workers": 0}, "workers"),
        ({"sizes": (1, 4)}, r"max_batch \(8\)"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused(
    model: Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Batcher(model, **options)


def test_threads_end_with_a_batcher_that_was_not_closed(model: Model) -> None:
    others = set(threading.enumerate())
    batcher = Batcher(model, 2, 0)
    assert batcher.submit({"x": floats(0, 0, 0)}).result(30)["y"][0] == 1
    threads = set(threading.enumerate()) - others
    assert threads
    del batcher
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_callback_that_ends_its_thread_costs_no_other_item_its_answer(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    with Batcher(model, 3, LONG_MS) as batcher, caplog.at_level(logging.ERROR, "armpy"):
        ending = batcher.submit({"x": floats(0, 0, 0)})
        ending.add_done_callback(lambda _: sys.exit(3))
        others = [batcher.submit({"x": floats(i, i, i)}) for i in (1, 2)]
        assert [f.result(30)["y"][0] for f in others] == [2, 3]
        ending = batcher.submit({"x": floats(0, 0, 0)}, deadline_s=0.01)
        ending.add_done_callback(lambda _: sys.exit(3))
        with pytest.raises(ExecutionTimeoutError):  # the thread that watches lives, too
            batcher.run({"x": floats(2, 2, 2)}, deadline_s=0.05)
        assert ending.done()
    assert "callback" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_was_forked_has_workers_of_its_own(model: Model, gate: Gate) -> None:
    with Batcher(model, 1, 0) as batcher:
        running = hold(batcher, gate)
        waiting = batcher.submit({"x": floats(1, 1, 1)})
        child = os.fork()
        if child == 0:
            outcome = 1
            try:
                gate.opened = threading.Event()
                gate.opened.set()
                answer = batcher.submit({"x": floats(2, 2, 2)}, deadline_s=20).result(30)
                outcome = 0 if answer["y"][0] == 3 and batcher.statistics.items == 1 else 2
                batcher.close()
            finally:
                os._exit(outcome)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.opened.set()
        assert [f.result(30)["y"][0] for f in (running, waiting)] == [1, 2]
