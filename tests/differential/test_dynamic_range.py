"""Files of quantised weights and real inputs against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from armpy_testing.models.tflite_writer import TfliteModel
from tests.differential.litert_oracle import run_litert


def dense(random: np.random.Generator, is_asymmetric: bool) -> bytes:
    """A FULLY_CONNECTED with random weights of 8 bits."""
    depth, units = (int(n) for n in random.integers(1, 40, 2))
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", (3, depth)), graph.tensor("y", (3, units))
    elements = random.integers(-127, 128, (units, depth)).astype(np.int8)
    scale = float(random.uniform(0.001, 0.1))
    weights = graph.tensor("w", (units, depth), "INT8", scale=scale, zero_point=0, data=elements)
    bias = graph.tensor("b", (units,), data=random.normal(size=units).astype(np.float32))
    options = {"asymmetric_quantize_inputs": is_asymmetric, "keep_num_dims": False}
    graph.operator("FULLY_CONNECTED", [x, weights, bias], [y], options, version=9)
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


def input_of(random: np.random.Generator, data: bytes) -> Array:
    """Numbers that lie to one side of zero, as those after a RELU do."""
    with armpy.load(data, backends=["CpuRef"]) as model:
        shape = model.inputs[0].info.known_shape
    return (random.uniform(-0.2, 1, shape) * random.uniform(0.1, 50)).astype(np.float32)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_inputs_are_quantised_as_the_file_says(backend: str, is_asymmetric: bool) -> None:
    random = np.random.default_rng(1)
    for _ in range(10):
        data = dense(random, is_asymmetric)
        x = input_of(random, data)
        expected = run_litert(data, [x])[0].astype(np.float32)
        with armpy.load(data, backends=[backend, "CpuRef"]) as model:
            result = model.run({"x": x})["y"]
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
