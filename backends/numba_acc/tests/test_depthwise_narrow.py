"""Depthwise convolutions of bytes with few channels, of which whole rows are computed at once."""

from __future__ import annotations

import numpy as np

from armpy import Network, ops
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import program_of


def test_registers_are_filled_with_several_pixels() -> None:
    net = Network()
    scale = Quantization.per_tensor(0.05, -17)
    image = net.input("x", TensorInfo((1, 9, 32, 8), DataType.QASYMM_S8, scale))
    weights = net.constant(
        np.ones((1, 3, 3, 8), np.int8),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization.per_tensor(0.01),
    )
    operation = ops.DepthwiseConvolution2d(padding=ops.Padding.SAME)
    net.output(
        "y", net.add(operation, image, weights, output=TensorInfo(None, DataType.QASYMM_S8, scale))
    )
    program = program_of(net)
    (kernel,) = (kernel for kernel in program.kernels if kernel.name == "depthwise_u8")
    assert kernel.parameters[0] != 8
