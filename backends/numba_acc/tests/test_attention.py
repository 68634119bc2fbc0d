"""Attention: hidden keys that are no numbers, and products that overflow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy import Network, Runtime, RuntimeOptions, ops
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType

F32 = DataType.FLOAT32


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mask", ["causal", "window", "float32", "bool", "keys", "truths of keys"])
@pytest.mark.parametrize("where", ["key", "value"])
def test_what_is_not_seen_may_be_no_number(where: str, mask: str, odd: float) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 2, 150, 5)).astype(np.float32) for _ in range(3)]
    clean = [array.copy() for array in arrays]
    arrays[1 if where == "key" else 2][:, :, 37:140:50, 3] = odd
    seen = np.tri(150, dtype=np.bool_)
    operation = ops.Attention()
    marks: list[Array] = []
    if mask == "causal":
        operation = ops.Attention(is_causal=True)
    elif mask == "window":
        operation = ops.Attention(left_window=4, right_window=1)
        seen = np.tri(150, k=1, dtype=np.bool_) & ~np.tri(150, k=-5, dtype=np.bool_)
    else:
        seen = seen[36:37] if "keys" in mask else seen
        marks = [seen if mask in ("bool", "truths of keys") else hidden(seen)]
    results = [one_attention(operation, [*inputs, *marks]) for inputs in (arrays, clean)]
    meets = np.broadcast_to(seen[:, 37:140:50].any(axis=1), 150)
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual[:, :, ~meets], expected[:, :, ~meets], atol=2e-6)
        if np.isnan(odd):
            touched = actual[:, :, meets] if where == "key" else actual[:, :, meets, 3]
            assert np.isnan(touched).all()
    cpu, accelerated = results[0]
    np.testing.assert_array_equal(np.isnan(accelerated), np.isnan(cpu))


def hidden(seen: Array) -> Array:
    """A mask of float32 that says the same."""
    return np.where(seen, 0, -np.inf).astype(np.float32)


def one_attention(operation: ops.Attention, arrays: Sequence[Array]) -> tuple[Array, Array]:
    """What CpuRef and NumbaAcc compute."""
    network = Network()
    types = {"float32": F32, "bool": DataType.BOOLEAN}
    types |= {"int32": DataType.SIGNED32, "int64": DataType.SIGNED64}
    infos = [TensorInfo(array.shape, types[array.dtype.name]) for array in arrays]
    inputs = [network.input(f"x{number}", info) for number, info in enumerate(infos)]
    no_mask = [None] if infos[-1].rank == 1 else []  # in front of lengths
    values = [*inputs[:3], *no_mask, *inputs[3:]]
    network.output("y", network.add_layer(operation, values).output)
    feeds = {f"x{number}": array for number, array in enumerate(arrays)}
    outputs = []
    for backend in ("CpuRef", "NumbaAcc"):
        with Runtime(RuntimeOptions(backends=[backend])) as runtime:
            outputs.append(runtime.enqueue_workload(runtime.load_network(network), feeds)["y"])
    return outputs[0], outputs[1]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "size"), [(0.25, 8e37), (4.0, 2e37)])
@pytest.mark.parametrize("num_queries", [1, 40])
def test_a_scale_keeps_large_products_finite(num_queries: int, scale: float, size: float) -> None:
    """Products are 1.6e38 and 0 with the scale, 6.4e38 without, or the scaled query is 8e38."""
    query, key, value = (np.zeros((1, 1, count, 3), np.float32) for count in (num_queries, 2, 2))
    query[..., 0], key[0, 0, 0, 0] = (8, size) if scale < 1 else (size * 10, 0.2)
    value[0, 0] = [[1, 2, 3], [4, 5, 6]]
    operation = ops.Attention(scale=scale, scales_products=scale > 1)
    for output in one_attention(operation, [query, key, value]):
        np.testing.assert_array_equal(output, np.broadcast_to([1, 2, 3], output.shape))


def test_scaled_products_overflow_before_the_scale() -> None:
    ones = np.ones((1, 1, 1, 1), np.float32)
    operation = ops.Attention(scale=0.25, scales_products=True)
    for output in one_attention(operation, [8 * ones, np.float32(1e38) * ones, ones]):
        assert np.isnan(output).all()
