"""Resizing of images, against CpuRef, on every instruction set of this processor."""

from __future__ import annotations

import pytest

from armpy import DataLayout, DataType, Network, Quantization, TensorInfo, ops
from armpy.ops.tolerance import EXACT

from .support import ISA_NAMES, ISAS, check_against_reference, random_array

F32 = TensorInfo((1,), DataType.FLOAT32)
U8 = TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3))
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, -3))
S16 = TensorInfo((1,), DataType.QSYMM_S16, quantization=Quantization.per_tensor(0.5))


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("layout", [DataLayout.NHWC, DataLayout.NCHW], ids=lambda v: v.name)
@pytest.mark.parametrize("method", ops.ResizeMethod, ids=lambda v: v.name)
def test_images_are_resized_as_cpuref_does(
    method: ops.ResizeMethod, layout: DataLayout, isa: str
) -> None:
    flags = [(False, False), (True, False), (False, True)]
    if method is ops.ResizeMethod.NEAREST_NEIGHBOR:
        flags.append((True, True))
    for kind in (F32, U8, S8, S16):
        tolerance = None if kind is F32 else EXACT
        for corners, centres in flags:
            for shape, size in (((2, 5, 7, 21), (13, 9)), ((1, 9, 4, 40), (4, 9))):
                layer = ops.Resize(size, method, corners, centres, layout)
                network = Network()
                x = network.input("x", kind.with_shape(shape))
                network.output("y", network.add(layer, x))
                inputs = {"x": random_array(x.info)}
                chosen = ISAS[ISA_NAMES.index(isa)]
                check_against_reference(network, inputs, chosen, tolerance=tolerance)
