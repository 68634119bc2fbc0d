"""Frames of zeros in front of convolutions are these convolutions' padding."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.pad_folding import with_folded_padding

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import SubgraphView, Value
from armpy.ops.operation import Operation

from .support import ISAS, check_against_reference, random_array

FLOAT32, QASYMM_U8 = DataType.FLOAT32, DataType.QASYMM_U8
FRAME = ((0, 0), (1, 2), (0, 1), (0, 0))


def network_of(
    pad: Operation, convolution: Operation, kind: DataType = FLOAT32
) -> tuple[Network, Value]:
    """A frame around an image of 16 channels, and a 3x3 convolution."""
    network = Network()
    quantization = None if kind is FLOAT32 else Quantization.per_tensor(0.05, 77)
    info = TensorInfo((2, 7, 6, 16), kind, quantization=quantization)
    framed = network.add(pad, network.input("x", info))
    is_depthwise = isinstance(convolution, ops.DepthwiseConvolution2d)
    shape = TensorInfo((1, 3, 3, 16) if is_depthwise else (32, 3, 3, 16), kind)
    values = random_array(shape, 1)
    weights = network.constant(values, data_type=kind, quantization=quantization)
    output = TensorInfo(None, kind, quantization=quantization)
    network.output("y", network.add(convolution, framed, weights, output=output))
    return network, framed


def joined(network: Network) -> list[Operation]:
    """Operations of what is left of a network's layers."""
    graph = network.build()
    return [la.operation for la in with_folded_padding(SubgraphView.of(graph, graph.layers)).layers]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [FLOAT32, QASYMM_U8])
@pytest.mark.parametrize(
    "convolution",
    [
        ops.DepthwiseConvolution2d(stride=(2, 2), padding=ops.Padding.VALID),
        ops.Convolution2d(padding=ops.Padding.SAME),
    ],
    ids=["depthwise", "same"],
)
def test_convolutions_pad_themselves(convolution: Operation, kind: DataType) -> None:
    network, _ = network_of(ops.Pad(FRAME), convolution, kind)
    (left,) = joined(network)
    is_same = isinstance(convolution, ops.Convolution2d)
    # SAME adds one pixel on each side to the frame's.
    expected = ((2, 3), (1, 2)) if is_same else FRAME[1:3]
    assert left.padding == expected  # type: ignore[attr-defined]
    inputs = {"x": random_array(TensorInfo((2, 7, 6, 16), kind))}
    check_against_reference(network, inputs, ISAS[0])


@pytest.mark.parametrize(
    "pad",
    [
        ops.Pad(FRAME, pad_value=1.0),
        ops.Pad(FRAME, padding_mode=ops.PaddingMode.SYMMETRIC),
        ops.Pad(((0, 1), (1, 1), (1, 1), (0, 0))),
    ],
    ids=["ones", "mirrored", "images"],
)
def test_other_frames_stay(pad: Operation) -> None:
    network, _ = network_of(pad, ops.DepthwiseConvolution2d())
    assert len(joined(network)) == 2


def test_frames_that_others_read_stay() -> None:
    network, framed = network_of(ops.Pad(FRAME), ops.DepthwiseConvolution2d())
    network.output("z", framed)
    assert len(joined(network)) == 2
    check_against_reference(network, {"x": np.ones((2, 7, 6, 16), np.float32)}, ISAS[0])
