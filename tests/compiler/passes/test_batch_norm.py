"""Batch normalisation that is part of the weights."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import DataLayout, Network, ops
from armpy.ops import BinaryOperation, ElementwiseBinary, FusedActivation
from armpy.ops.operation import Array, Operation
from armpy_testing.models.networks import ADD, MUL, RELU, f32
from tests.support.passes import after_pass, layer_named, random_inputs, run

CHANNELS = 6
RANDOM = np.random.default_rng(5)
SUB = ElementwiseBinary(BinaryOperation.SUB)
DIV = ElementwiseBinary(BinaryOperation.DIV)


def numbers(*shape: int) -> Array:
    return RANDOM.uniform(0.5, 2, shape).astype(np.float32)


def network_of(product: Operation, *following: Operation, with_bias: bool = True) -> Network:
    """A product with its elementwise layers; every other one has the constant on its left."""
    net = Network()
    is_image = not isinstance(product, ops.FullyConnected)
    in_front = is_image and product.data_layout is DataLayout.NCHW  # type: ignore[attr-defined]
    shape = (2, 3, 8, 7) if in_front else (2, 8, 7, 3)
    x = net.input("x", f32(*shape) if is_image else f32(4, 3))
    weights = {
        ops.Convolution2d: (CHANNELS, 3, 3, 3),
        ops.DepthwiseConvolution2d: (1, 3, 3, CHANNELS),
        ops.FullyConnected: (CHANNELS, 3),
        ops.TransposeConvolution2d: (CHANNELS, 3, 3, 3),
    }[type(product)]
    bias = [net.constant(numbers(CHANNELS))] if with_bias else []
    value = net.add(product, x, net.constant(numbers(*weights)), *bias, name="product")
    for index, operation in enumerate(following):
        per_channel = numbers(CHANNELS, 1, 1) if in_front else numbers(CHANNELS)
        pair = (value, net.constant(per_channel))
        is_turned = index % 2 and operation.operation is not BinaryOperation.DIV  # type: ignore[attr-defined]
        value = net.add(operation, *(pair[::-1] if is_turned else pair), name=f"step_{index}")
    net.output("y", value)
    return net


@pytest.mark.parametrize(
    "product",
    [
        ops.Convolution2d(stride=(2, 1)),
        ops.Convolution2d(data_layout=DataLayout.NCHW),
        ops.DepthwiseConvolution2d(),
        ops.FullyConnected(),
        ops.TransposeConvolution2d(stride=(2, 2)),
    ],
    ids=["convolution", "nchw", "depthwise", "dense", "transposed"],
)
@pytest.mark.parametrize("with_bias", [True, False])
def test_factors_and_terms_become_weights_and_biases(product: Operation, with_bias: bool) -> None:
    graph = network_of(product, MUL, ADD, SUB, SUB, DIV, with_bias=with_bias).build()
    folded = after_pass("fold_batch_norm", graph)
    assert len(folded.layers) == 1
    assert layer_named(folded, "product") == ("product", *(f"step_{i}" for i in range(5)))
    inputs = random_inputs(graph)
    expected, got = run(graph, inputs)["y"], run(folded, inputs)["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_factor_of_all_channels_is_folded_as_well() -> None:
    net = Network()
    weights = net.constant(numbers(CHANNELS, 3))
    value = net.add(ops.FullyConnected(), net.input("x", f32(4, 3)), weights)
    net.output("y", net.add(MUL, value, net.constant(np.float32(0.125))))
    (layer,) = after_pass("fold_batch_norm", net.build()).layers
    np.testing.assert_array_equal(layer["weights"].data, weights.data * np.float32(0.125))  # type: ignore[operator]


@pytest.mark.parametrize("what", ["activation", "weights", "reader", "rows", "zero", "large"])
def test_layers_stay_that_are_no_factor_of_the_weights(what: str) -> None:
    net = Network()
    kind = ops.FullyConnected(FusedActivation.RELU if what == "activation" else FusedActivation(0))
    weights = net.constant(numbers(4, 3))
    value = net.add(
        kind,
        net.input("x", f32(4, 3)),
        weights if what != "weights" else (net.input("w", f32(4, 3))),
    )
    if what == "reader":
        net.output("z", net.add(RELU, value))
    per: Array = {
        "rows": numbers(4, 1),
        "large": np.full(1, 3e38, np.float32),
        "zero": np.zeros(4, np.float32),
    }.get(what, numbers(4))
    operation = DIV if what == "zero" else MUL
    net.output("y", net.add(operation, value, net.constant(per)))
    graph = net.build()
    assert after_pass("fold_batch_norm", graph, ReferenceBackend()) is graph
