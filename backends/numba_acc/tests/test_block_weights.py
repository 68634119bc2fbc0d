"""Products with weights of few bits in blocks: the same for a row among others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc.lowering.block_weights import pack_blocks

from armpy import Network, Runtime, RuntimeOptions, ops
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType

F32 = DataType.FLOAT32


UNITS = 230
"""Several times the most panels that are multiplied at once, some panels, and a part of one."""


def infos_of(bits: int, block: int, depth: int, units: int, rows: int) -> list[TensorInfo]:
    """Input, weights, scales, zero points and bias."""
    blocks = -(-depth // block)
    weights = TensorInfo((units, blocks, block * bits // 8), DataType.UNSIGNED8)
    points = TensorInfo((units, blocks), DataType.UNSIGNED8)
    shapes = (rows, depth), (units, blocks), (units,)
    x, scales, bias = (TensorInfo(shape, F32) for shape in shapes)
    return [x, weights, scales, points, bias]


def random_arrays(bits: int, infos: list[TensorInfo]) -> list[Array]:
    """Elements; zero points have no more bits than the weights."""
    rng = np.random.default_rng(3)
    x, scales, bias = (rng.normal(size=infos[i].known_shape).astype(np.float32) for i in (0, 2, 4))
    weights, points = (
        rng.integers(0, 1 << width, infos[i].known_shape).astype(np.uint8)
        for i, width in ((1, 8), (3, bits))
    )
    return [x, weights, scales, points, bias]


@pytest.mark.parametrize("quantizes_input", [False, True])
def test_a_row_of_constant_weights_has_the_same_bits_alone(quantizes_input: bool) -> None:
    operation = ops.BlockwiseFullyConnected(4, quantizes_input)
    whole, expected = (_outputs(operation, slice(None), name) for name in ("NumbaAcc", "CpuRef"))
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-4)
    for row in range(9):
        alone = _outputs(operation, slice(row, row + 1), "NumbaAcc")
        np.testing.assert_array_equal(alone, whole[row : row + 1])


def test_constants_are_found_among_packed_words() -> None:
    _, weights, scales, *_ = random_arrays(4, infos_of(4, 32, depth=96, units=70, rows=1))
    words = [array.view(np.uint32).reshape(70, 3, -1) for array in (scales, weights)]
    packed = pack_blocks(16, (scales, words[0]), (weights, words[1]))
    for constant, origin in zip((scales, weights), packed.origins, strict=True):
        places = origin.places(0)
        np.testing.assert_array_equal(places, replace(origin, together=1).places(0))
        stored = packed.array.reshape(-1)[places[..., None] + np.arange(constant.itemsize)]
        np.testing.assert_array_equal(stored.view(constant.dtype)[..., 0], constant)


def _outputs(operation: ops.BlockwiseFullyConnected, rows: slice, backend: str) -> Array:
    """What a backend computes of some rows."""
    infos = infos_of(operation.bits, 32, depth=192, units=UNITS, rows=9)
    x, *others = random_arrays(operation.bits, infos)
    network = Network()
    value = network.input("x", TensorInfo(x[rows].shape, F32))
    weights = [
        network.constant(array, data_type=info.data_type)
        for array, info in zip(others, infos[1:], strict=True)
    ]
    network.output("y", network.add(operation, value, *weights))
    with Runtime(RuntimeOptions(backends=[backend])) as runtime:
        return runtime.enqueue_workload(runtime.load_network(network), {"x": x[rows]})["y"]
