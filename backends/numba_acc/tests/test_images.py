"""Batches whose first layers are run image by image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.passes.images import Images, images_of
from armpy_numba_acc.passes.region import lower_region, prepared
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy import Network
from armpy.graph import SubgraphView, Value
from armpy.ops import (
    Activation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    Padding,
    Pooling2d,
    Reshape,
    Softmax,
    Transpose,
)
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.operation import Array
from armpy.ops.pooling import PoolingAlgorithm
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import ISAS

ISA = ISAS[0]
BYTES = Quantization((0.05,), (3,))


def network(batch: int, data_type: DataType = DataType.FLOAT32) -> Network:
    """Layers with large images, then some with many weights."""
    random = np.random.default_rng(0)
    is_float = data_type is DataType.FLOAT32

    def info(*shape: int) -> TensorInfo:
        return TensorInfo(shape, data_type, None if is_float else BYTES)

    def weights(net: Network, *shape: int) -> Value:
        if is_float:
            return net.constant(random.normal(0, 0.2, shape).astype(np.float32))
        values = random.integers(-127, 127, shape).astype(np.int8)
        return net.constant(values, data_type=data_type, quantization=Quantization((0.01,), (0,)))

    net = Network()
    value = net.input("x", info(batch, 96, 96, 24))
    value = net.add(
        Convolution2d(padding=Padding.SAME),
        value,
        weights(net, 32, 1, 1, 24),
        output=info(batch, 96, 96, 32),
    )
    value = net.add(Activation(), value)
    left = net.add(
        DepthwiseConvolution2d(padding=Padding.SAME, stride=(2, 2)),
        value,
        weights(net, 1, 3, 3, 32),
        output=info(batch, 48, 48, 32),
    )
    right = net.add(
        Pooling2d(PoolingAlgorithm.MAX, (2, 2), (2, 2)), value, output=info(batch, 48, 48, 32)
    )
    net.output("early", right)
    value = net.add(
        ElementwiseBinary(BinaryOperation.ADD), left, right, output=info(batch, 48, 48, 32)
    )
    value = net.add(Concat(axis=-1), value, right, output=info(batch, 48, 48, 64))
    value = net.add(
        Pooling2d(PoolingAlgorithm.AVERAGE, (8, 8), (8, 8)), value, output=info(batch, 6, 6, 64)
    )
    value = net.add(Reshape(target_shape=(batch, 2304)), value)
    value = net.add(FullyConnected(), value, weights(net, 300, 2304), output=info(batch, 300))
    net.output("y", value)
    return net


def view_of(net: Network) -> SubgraphView:
    graph = net.build()
    return SubgraphView.of(graph, graph.layers)


def taken_apart(view: SubgraphView) -> Images | None:
    return images_of(prepared(view), typical(ISA))


def run(program: Program, view: SubgraphView, inputs: Mapping[str, Array]) -> list[Array]:
    inputs_in_order = [inputs[value.name] for value in view.inputs]
    outputs = [np.empty(v.info.known_shape, v.info.data_type.dtype) for v in view.outputs]
    Instance(LoadedCode(program, ISA)).run([*inputs_in_order, *outputs])
    return outputs


def batch_of(view: SubgraphView) -> dict[str, Array]:
    random = np.random.default_rng(1)
    arrays: dict[str, Array] = {}
    for value in view.inputs:
        shape, dtype = value.info.known_shape, value.info.data_type.dtype
        drawn = (
            random.normal(size=shape) if dtype.kind == "f" else random.integers(-128, 128, shape)
        )
        arrays[value.name] = drawn.astype(dtype)
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "num_threads"), [(DataType.FLOAT32, 2), (DataType.QASYMM_S8, 1)]
)
def test_every_image_of_a_batch_is_what_it_is_alone(data_type: DataType, num_threads: int) -> None:
    batch, single = (view_of(network(count, data_type)) for count in (5, 1))
    images = taken_apart(batch)
    assert images is not None
    assert 0 < len(images.one.layers) < len(images.one.layers) + len(images.rest.layers)
    inputs = batch_of(batch)
    together = run(lower_region(batch, ISA, num_threads), batch, inputs)
    alone = lower_region(single, ISA, num_threads)
    for image in range(5):
        part = {name: array[image : image + 1] for name, array in inputs.items()}
        for whole, expected in zip(together, run(alone, single, part), strict=True):
            np.testing.assert_array_equal(whole[image : image + 1], expected)


def test_layers_with_many_weights_see_the_whole_batch() -> None:
    images = taken_apart(view_of(network(8)))
    assert images is not None
    assert [layer.operation.name for layer in images.rest.layers][-1] == "FullyConnected"
    assert images.one.layers[0].inputs[0] in images.inputs
    assert all(value.info.known_shape[0] == 1 for value in images.one.inputs)


def test_memory_is_that_of_one_image_and_of_what_is_handed_over() -> None:
    arenas = {count: lower_region(view_of(network(count)), ISA).arena_bytes for count in (1, 8)}
    handed_over = 8 * 4 * (6 * 6 * 64 + 48 * 48 * 64)
    assert arenas[8] <= arenas[1] + handed_over


def test_a_single_image_is_not_taken_apart() -> None:
    assert taken_apart(view_of(network(1))) is None


def test_small_images_stay_together() -> None:
    net = Network()
    value = net.input("x", TensorInfo((4, 8, 8, 8), DataType.FLOAT32))
    net.output("y", net.add(Activation(), value))
    assert taken_apart(view_of(net)) is None


@pytest.mark.parametrize(
    "operation",
    [
        Transpose(perm=(1, 0, 2, 3)),
        Concat(axis=0),
        Softmax(axis=0),
        Reshape(target_shape=(256, 256, 4, 8)),
    ],
)
def test_layers_that_mix_images_end_it(operation: object) -> None:
    net = Network()
    value = net.input("x", TensorInfo((8, 256, 32, 32), DataType.FLOAT32))
    value = net.add(Activation(), value)
    operands = (value, value) if isinstance(operation, Concat) else (value,)
    value = net.add(operation, *operands)  # type: ignore[arg-type]  # any operation
    net.output("y", net.add(Activation(), value))
    images = taken_apart(view_of(net))
    layers = [] if images is None else [layer.operation for layer in images.one.layers]
    assert operation not in layers


def test_constants_with_an_image_for_each_end_it() -> None:
    net = Network()
    value = net.input("x", TensorInfo((8, 64, 64, 32), DataType.FLOAT32))
    other = net.constant(np.arange(8 * 64 * 64 * 32, dtype=np.float32).reshape(8, 64, 64, 32))
    value = net.add(ElementwiseBinary(BinaryOperation.ADD), value, other)
    net.output("y", value)
    assert taken_apart(view_of(net)) is None
