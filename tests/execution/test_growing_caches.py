"""Decoders whose cache of keys and values grows by one with each call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    BatchMatMul,
    Concat,
    FullyConnected,
    Gather,
    LayerNormalization,
    Reshape,
    Shape,
    Softmax,
    Splitter,
    Stack,
    Transpose,
)
from armpy.ops.operation import Array
from armpy_testing.models.networks import ADD, f32
from armpy_testing.preparations import ORDINARY_PROGRAMS, watch_preparations

LAYERS, HEADS, DEPTH = 1, 4, 8
WIDTH = HEADS * DEPTH


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)


def decoder() -> Network:
    """A decoder whose cache of shape (layers, 2, 1, heads, length, depth) is concatenated."""
    net = Network()
    x, past = (
        net.input("x", f32(1, 1, WIDTH)),
        net.input("past", f32(LAYERS, 2, 1, HEADS, None, DEPTH)),
    )

    def index(*indices: int) -> Value:
        return net.constant(np.array(indices, np.int32))

    def scalar(number: int) -> Value:
        return net.constant(np.array(number, np.int32))

    def linear(value: Value, seed: int, size: int = WIDTH) -> Value:
        flat = net.add(Reshape(target_shape=(1, WIDTH)), value)
        return net.add(FullyConnected(), flat, net.constant(numbers(seed, size, WIDTH)))

    def heads(value: Value) -> Value:
        split = net.add(Reshape((1, 1, HEADS, DEPTH)), value)
        return net.add(Transpose(perm=(0, 2, 1, 3)), split)

    def keys_by_column(keys: Value) -> Value:
        """Transposed in three dimensions, with sizes read from the shape, as PyTorch exports it."""
        shape = net.add(Shape(), keys)
        length, depth = (net.add(Gather(), shape, index(axis)) for axis in (2, 3))
        flat = net.add(Reshape(), keys, net.add(Concat(0), index(-1), length, depth))
        turned = net.add(Transpose(perm=(0, 2, 1)), flat)
        return net.add(Reshape(), turned, net.add(Concat(0), index(1, HEADS), depth, length))

    caches = []
    for layer in range(LAYERS):
        cached = net.add(Gather(axis=0), past, scalar(layer))
        mixed = linear(net.add(LayerNormalization(axes=(-1,)), x), 2 * layer, 3 * WIDTH)
        query, *new = map(heads, net.add_layer(Splitter(3, axis=-1), [mixed]).outputs)
        keys, values = (
            net.add(Concat(2), net.add(Gather(axis=0), cached, scalar(number)), part)
            for number, part in enumerate(new)
        )
        caches.append(net.add(Stack(0), keys, values))
        scores = net.add(Softmax(axis=-1), net.add(BatchMatMul(), query, keys_by_column(keys)))
        seen = net.add(Transpose(perm=(0, 2, 1, 3)), net.add(BatchMatMul(), scores, values))
        y = net.add(Reshape((1, 1, WIDTH)), linear(seen, 2 * layer + 1))
        x = net.add(ADD, x, y)
    net.output("y", x)
    net.output("present", net.add(Stack(0), *caches))
    return net


def load() -> Model:
    return Model(decoder(), Runtime(RuntimeOptions(["NumbaAcc", "CpuRef"], num_threads=1)))


def inputs_for(length: int) -> dict[str, Array]:
    past = numbers(length, LAYERS, 2, 1, HEADS, length, DEPTH)
    return {"x": numbers(length + 1, 1, 1, WIDTH), "past": past}


@pytest.fixture
def num_prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a network was optimised, for one size or for traced ones."""
    calls: list[None] = []
    watch_preparations(monkeypatch, lambda _: calls.append(None))
    return lambda: len(calls)


def test_a_cache_that_is_empty_at_first_is_traced(num_prepared: Callable[[], int]) -> None:
    model = load()
    for length in range(12):
        model.run(inputs_for(length))
    assert num_prepared() <= ORDINARY_PROGRAMS + 2
