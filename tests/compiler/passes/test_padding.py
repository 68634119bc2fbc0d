"""Padding that the layer after it does itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import DataLayout, DataType, Network, Quantization, TensorInfo, ops
from armpy.backend import ReasonCode, Support
from armpy.ops import FusedActivation, Padding, PoolingAlgorithm
from armpy.ops.operation import OperandInfos, Operation
from armpy_testing.backends.fake_backends import FakeBackend
from tests.support.passes import after, after_pass, layer_named

FRAME = ((0, 0), (1, 2), (0, 1), (0, 0))
SCALES = Quantization.per_tensor(0.05, 7)


def network_of(
    pad: Operation,
    reader: Operation,
    data_type: DataType = DataType.FLOAT32,
    first: Operation | None = None,
) -> Network:
    """An image with a frame around it, and what reads that."""
    net = Network()
    quantization = SCALES if data_type.is_quantized else None
    info = TensorInfo((2, 7, 6, 4), data_type, quantization)
    x = net.input("x", info)
    if first is not None:
        x = net.add(first, x)
    framed = net.add(pad, x, name="frame")
    random = np.random.default_rng(3)
    inputs = []
    if not isinstance(reader, ops.Pooling2d):
        shape = (1, 3, 3, 4) if isinstance(reader, ops.DepthwiseConvolution2d) else (5, 3, 3, 4)
        if data_type.is_quantized:
            values = random.integers(-100, 100, shape, np.int8)
        else:
            values = random.normal(size=shape).astype(data_type.dtype)
        inputs = [net.constant(values, data_type=data_type, quantization=quantization)]
    output = info.with_shape(None)
    net.output("y", net.add(reader, framed, *inputs, output=output, name="reader"))
    return net


@pytest.mark.sampled(5)
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16, DataType.QASYMM_S8])
@pytest.mark.parametrize(
    "reader",
    [
        ops.Convolution2d(stride=(2, 2)),
        ops.DepthwiseConvolution2d(dilation=(2, 1)),
        ops.Convolution2d(padding=((1, 0), (2, 2)), activation=FusedActivation.RELU),
    ],
    ids=["valid", "depthwise", "padded"],
)
def test_convolutions_pad_themselves(reader: Operation, data_type: DataType) -> None:
    folded = after("fold_pad", network_of(ops.Pad(FRAME), reader, data_type))
    (layer,) = folded.layers
    own = ((0, 0), (0, 0)) if reader.padding is Padding.VALID else reader.padding  # type: ignore[attr-defined]
    total = tuple((a + c, b + d) for (a, b), (c, d) in zip(FRAME[1:3], own, strict=True))
    assert layer.operation.padding == total  # type: ignore[attr-defined]
    assert layer_named(folded, "reader") == ("frame", "reader")


@pytest.mark.slow
def test_images_with_channels_in_front_are_padded_along_their_sides() -> None:
    frame = ((0, 0), (0, 0), (1, 1), (2, 0))
    net = Network()
    x = net.input("x", TensorInfo((1, 4, 5, 6), DataType.FLOAT32))
    weights = net.constant(np.ones((2, 3, 3, 4), np.float32))
    convolution = ops.Convolution2d(data_layout=DataLayout.NCHW)
    net.output("y", net.add(convolution, net.add(ops.Pad(frame), x), weights))
    (layer,) = after("fold_pad", net).layers
    assert layer.operation.padding == ((1, 1), (2, 0))  # type: ignore[attr-defined]


POOL = ops.Pooling2d(pool_size=(3, 3), stride=(2, 2))


def test_maxima_leave_out_what_is_below_any_element() -> None:
    folded = after("fold_pad", network_of(ops.Pad(FRAME, pad_value=-np.inf), POOL))
    assert folded.layers[0].operation.padding == FRAME[1:3]  # type: ignore[attr-defined]
    lowest = (-128 - SCALES.zero_point) * SCALES.scale
    folded = after(
        "fold_pad", network_of(ops.Pad(FRAME, pad_value=lowest), POOL, DataType.QASYMM_S8)
    )
    assert len(folded.layers) == 1


def test_maxima_after_a_clamp_at_zero_leave_out_zeros() -> None:
    first = ops.Pooling2d(activation=FusedActivation.RELU)
    folded = after("fold_pad", network_of(ops.Pad(FRAME), POOL, DataType.QASYMM_S8, first))
    assert len(folded.layers) == 2


@pytest.mark.parametrize(
    ("pad", "reader", "data_type"),
    [
        (ops.Pad(FRAME, pad_value=1.0), ops.Convolution2d(), DataType.FLOAT32),
        (ops.Pad(FRAME, pad_value=-0.0), ops.Convolution2d(), DataType.FLOAT32),
        (ops.Pad(FRAME, pad_value=-0.1), ops.Convolution2d(), DataType.QASYMM_S8),
        (
            ops.Pad(FRAME, padding_mode=ops.PaddingMode.REFLECT),
            ops.Convolution2d(),
            DataType.FLOAT32,
        ),
        (ops.Pad(((1, 0), *FRAME[1:])), ops.Convolution2d(), DataType.FLOAT32),
        (ops.Pad(FRAME), POOL, DataType.FLOAT32),
        (ops.Pad(FRAME), POOL, DataType.QASYMM_S8),
        (
            ops.Pad(FRAME),
            ops.Pooling2d(PoolingAlgorithm.AVERAGE, (3, 3)),
            DataType.FLOAT32,
        ),
        (ops.Pad(FRAME, pad_value=-np.inf), ops.Pooling2d(pool_size=(2, 2)), DataType.FLOAT32),
    ],
    ids=[
        "ones",
        "minus-zero",
        "below",
        "mirrored",
        "images",
        "zeros",
        "stored-zeros",
        "mean",
        "whole-windows",
    ],
)
def test_padding_that_makes_a_difference_stays(
    pad: Operation, reader: Operation, data_type: DataType
) -> None:
    graph = network_of(pad, reader, data_type).build()
    assert after_pass("fold_pad", graph) is graph


def test_padding_that_others_read_stays() -> None:
    net = network_of(ops.Pad(FRAME), ops.Convolution2d())
    net.output("framed", net.build().layers[0].output)
    graph = net.build()
    assert after_pass("fold_pad", graph) is graph


def test_a_backend_without_explicit_padding_keeps_both_layers() -> None:
    class OnlySame(FakeBackend):
        def supports(
            self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
        ) -> Support:
            padding = getattr(operation, "padding", None)
            if padding is not None and not isinstance(padding, Padding):
                return Support.no(ReasonCode.OTHER, "SAME or VALID only")
            return super().supports(operation, inputs, outputs)

    graph = network_of(ops.Pad(FRAME), ops.Convolution2d()).build()
    assert after_pass("fold_pad", graph, OnlySame("OnlySame"), ReferenceBackend()) is graph
