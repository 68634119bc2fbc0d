"""Products of bytes whose int32 sums are the output are CpuRef's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa

from armpy import Network, ops
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    ISAS,
    PRODUCT_ISAS,
    check_against_reference,
    random_array,
)

U8, S8 = DataType.QASYMM_U8, DataType.QASYMM_S8
SUMS = TensorInfo(None, DataType.SIGNED32)

LAYERS = (
    # Weights less their zero point do not fit signed bytes: each row has a correction.
    (ops.FullyConnected(), (S8, -7), (9, 70), (U8, 100), (19, 70), True),
    (ops.Convolution2d(padding=ops.Padding.SAME), (U8, 9), (1, 5, 6, 4), (U8, 99), (6, 3, 3, 2), 0),
    (ops.TransposeConvolution2d((2, 2)), (U8, 9), (1, 3, 4, 6), (S8, 90), (7, 3, 2, 6), False),
)
"""Operation, type, zero point and shape of input and weights, and whether there is a bias."""

UNITS = [isa for isa in PRODUCT_ISAS if isa.matrix_unit == "emulated"]


def network_of_all() -> tuple[Network, dict[str, Array]]:
    """A network of all layers side by side, and its inputs."""
    network, inputs = Network(), dict[str, Array]()
    for number, (operation, of_x, shape, of_w, weights_shape, has_bias) in enumerate(LAYERS):
        kinds = [(kind, Quantization.per_tensor(1.0, point)) for kind, point in (of_x, of_w)]
        infos = [TensorInfo(s, *k) for s, k in zip((shape, weights_shape), kinds, strict=True)]
        weights = random_array(infos[1], 1)
        values = [
            network.input(f"x{number}", infos[0]),
            network.constant(weights, data_type=kinds[1][0], quantization=kinds[1][1]),
        ]
        if has_bias:
            values.append(network.constant(np.arange(len(weights), dtype=np.int32) * -(1 << 20)))
        network.output(f"y{number}", network.add(operation, *values, output=SUMS))
        inputs[f"x{number}"] = random_array(infos[0], 2)
    return network, inputs


@pytest.mark.slow
@pytest.mark.parametrize("isa", [*ISAS[:1], *UNITS], ids=lambda isa: isa.name)
def test_sums_are_those_of_the_reference(isa: Isa) -> None:
    check_against_reference(*network_of_all(), isa)


def test_sums_of_two_computed_matrices_are_those_of_the_reference() -> None:
    network, inputs = Network(), dict[str, Array]()
    values = []
    for name, shape, kind, point in (("x", (2, 1, 5, 37), U8, 3), ("y", (3, 37, 18), S8, -128)):
        info = TensorInfo(shape, kind, Quantization.per_tensor(1.0, point))
        values.append(network.input(name, info))
        inputs[name] = random_array(info)
    network.output("sums", network.add(ops.BatchMatMul(), *values, output=SUMS))
    check_against_reference(network, inputs, ISAS[0])
