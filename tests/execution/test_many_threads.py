"""Threads that share models in every way at once: each call gets its own, right answer.

``-s`` shows what ran.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.errors import InvalidArgumentError
from armpy.model import Model
from armpy.ops import Activation, FullyConnected
from armpy_testing.effort import effort
from backends.numba_acc.tests.networks import convolutions, image

SECONDS = effort(3.0)
NUM_THREADS = 8
NUM_INPUTS = 4
MOST_ROWS = 24
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def open_network() -> Network:
    """Two layers for any number of rows."""
    chance = np.random.default_rng(0)
    net = Network()
    value = net.input("x", TensorInfo((None, 8), DataType.FLOAT32))
    for _ in range(2):
        weights = chance.normal(size=(8, 8)).astype(np.float32)
        value = net.add(Activation(), net.add(FullyConnected(), value, net.constant(weights)))
    net.output("y", value)
    return net


class Shared:
    """Models that all threads use, and the right answers, found before on one thread."""

    def __init__(self) -> None:
        chance = np.random.default_rng(1)
        options = RuntimeOptions(backends=["NumbaAcc", "CpuRef"])
        self.digits = armpy.load(DIGITS)
        self.pictures = chance.integers(-128, 128, (NUM_INPUTS, 1, 16, 16, 1)).astype(np.int8)
        self.scores = [self.digits(picture) for picture in self.pictures]
        self.open = Model(open_network(), Runtime(options), closes_runtime=True)
        self.rows = [chance.normal(size=(n, 8)).astype(np.float32) for n in range(1, MOST_ROWS)]
        with Model(open_network(), Runtime(options), closes_runtime=True) as alone:
            self.row_answers = [alone(rows) for rows in self.rows]
        self.large = Model(convolutions(24, 16, 2), Runtime(options), closes_runtime=True)
        self.images = [image(24, 16, seed) for seed in range(NUM_INPUTS)]
        self.large_answers = [self.large.run(inputs)["y"] for inputs in self.images]
        self.short_lived = armpy.load(DIGITS)

    def close(self) -> None:
        for model in (self.digits, self.open, self.large, self.short_lived):
            model.close()


class Caller:
    """One thread's calls, with bound executions of its own."""

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared = shared
        self.chance = random.Random(number)
        self.picture = shared.pictures[0].copy()
        self.scores = np.zeros_like(shared.scores[0])
        name, output = shared.digits.inputs[0].name, shared.digits.outputs[0].name
        self.named = {name: self.picture}, {output: self.scores}
        self.bound = shared.digits.bind(*self.named)
        self.image = {"x": shared.images[0]["x"].copy()}
        self.bound_large = shared.large.bind(self.image, cancellable=True)

    def call(self) -> str:
        """Do one thing; its name."""
        kinds: list[Callable[[int], None]] = [
            *(self.calls, self.runs, self.calls_bound, self.runs_rows, self.runs_rows),
            *(self.runs_large, self.calls_bound_large, self.starts, self.uses_short_lived),
        ]
        if self.chance.random() < 0.02:
            kinds = [self.loads, self.replaces]
        kind = self.chance.choice(kinds)
        kind(self.chance.randrange(NUM_INPUTS))
        return kind.__name__

    def calls(self, number: int) -> None:
        same(self.shared.digits(self.shared.pictures[number]), self.shared.scores[number])

    def runs(self, number: int) -> None:
        self.picture[...] = self.shared.pictures[number]
        self.shared.digits.run(*self.named)
        same(self.scores, self.shared.scores[number])

    def calls_bound(self, number: int) -> None:
        self.picture[...] = self.shared.pictures[number]
        self.bound()
        same(self.scores, self.shared.scores[number])

    def runs_rows(self, _: int) -> None:
        index = self.chance.randrange(len(self.shared.rows))
        answer = self.shared.open(self.shared.rows[index])
        np.testing.assert_allclose(answer, self.shared.row_answers[index], rtol=1e-5, atol=1e-5)

    def runs_large(self, number: int) -> None:
        answer = self.shared.large.run(self.shared.images[number])["y"]
        same(answer, self.shared.large_answers[number])

    def calls_bound_large(self, number: int) -> None:
        self.image["x"][...] = self.shared.images[number]["x"]
        same(self.bound_large()["y"], self.shared.large_answers[number])

    def starts(self, number: int) -> None:
        self.image["x"][...] = self.shared.images[number]["x"]
        same(self.bound_large.start().result()["y"], self.shared.large_answers[number])

    def loads(self, number: int) -> None:
        with armpy.load(DIGITS) as model:
            same(model(self.shared.pictures[number]), self.shared.scores[number])

    def replaces(self, _: int) -> None:
        former, self.shared.short_lived = self.shared.short_lived, armpy.load(DIGITS)
        former.close()

    def uses_short_lived(self, number: int) -> None:
        try:
            answer = self.shared.short_lived(self.shared.pictures[number])
        except InvalidArgumentError as error:
            assert "closed" in str(error) or "unloaded" in str(error)  # noqa: PT017 - seldom raised
        else:
            same(answer, self.shared.scores[number])


def same(answer: object, expected: object) -> None:
    np.testing.assert_array_equal(np.asarray(answer), np.asarray(expected))


def use(shared: Shared, number: int, is_over: threading.Event) -> Counter[str]:
    """Call in one way after the other; how often each."""
    caller, counts = Caller(shared, number), Counter[str]()
    try:
        while not is_over.is_set():
            counts[caller.call()] += 1
    finally:
        is_over.set()
    return counts


@pytest.mark.slow
def test_threads_that_use_models_in_every_way_get_right_answers() -> None:
    shared, is_over = Shared(), threading.Event()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(NUM_THREADS) as threads:
            tasks = [threads.submit(use, shared, n, is_over) for n in range(NUM_THREADS)]
            is_over.wait(SECONDS)
            is_over.set()
        counts = sum((task.result() for task in tasks), Counter[str]())
    finally:
        sys.setswitchinterval(interval)
        shared.close()
    print(dict(counts))
    assert {"loads", "replaces", "calls", "starts"} <= counts.keys()
