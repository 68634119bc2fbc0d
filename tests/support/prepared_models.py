"""Models with programs of NumbaAcc, as compiled models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy import Model, Network, Quantization, Runtime, TensorInfo
from armpy.core import file_ownership
from armpy.graph import Graph
from armpy.model.archive import model_cache
from armpy.ops import FullyConnected, Softmax
from armpy.store.archive import checksum_cache
from armpy.types import DataType
from armpy_testing.models.networks import ADD, RELU, f32

BATCH = 2
SHAPES = {"x": (BATCH, 4), "more": (BATCH, 3)}


def use_own_model_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Switch the model cache on, in a folder of the test's own; return where models are kept.

    Compiled kernels stay in the cache of the run. Its mark of new measurements does not count, as
    tests in other processes set it while a model is loaded, which is not kept then.
    """
    monkeypatch.setenv("ARMPY_MODEL_CACHE", "on")
    monkeypatch.setattr(file_ownership, "_CHOICES", str(folder / "choices"))
    for module in (model_cache, checksum_cache):
        monkeypatch.setattr(module, "cache_folder", lambda: str(folder))
    return folder / "models"


def two_inputs() -> Graph:
    """``y = softmax(relu(x W) + more)``, ``z = relu(x W)``, for any number of rows."""
    net = Network("two inputs")
    x, more = net.input("x", f32(None, 4)), net.input("more", f32(None, 3))
    random = np.random.default_rng(1)
    weights = net.constant(random.normal(size=(3, 4)).astype(np.float32))
    bias = net.constant(random.normal(size=3).astype(np.float32))
    dense = net.add(FullyConnected(), x, weights, bias, name="dense")
    hidden = net.add(RELU, dense, name="relu")
    net.output("y", net.add(Softmax(), net.add(ADD, hidden, more, name="sum"), name="softmax"))
    net.output("z", hidden)
    return net.build()


def inputs_of(rows: int = BATCH) -> dict[str, np.ndarray]:
    """Inputs of `two_inputs`."""
    random = np.random.default_rng(rows)
    return {
        "x": random.normal(size=(rows, 4)).astype(np.float32),
        "more": random.normal(size=(rows, 3)).astype(np.float32),
    }


def prepared_model(graph: Graph, runtime: Runtime | None = None) -> Model:
    """A model of `two_inputs` that is prepared for `SHAPES`."""
    model = Model(graph, runtime)
    model.prepare(SHAPES)
    return model


def save_two_inputs(path: Path) -> Path:
    """A compiled model of `two_inputs`."""
    with prepared_model(two_inputs()) as model:
        model.save(path)
    return path


def quantized() -> Graph:
    """``y = relu(x)`` with quantised numbers."""
    info = TensorInfo((1, 8), DataType.QASYMM_S8, Quantization.per_tensor(0.5, -3))
    net = Network("quantized")
    net.output("y", net.add_layer(RELU, [net.input("x", info)], outputs=[info]).output)
    return net.build()
