"""Casts of signed bytes within a region."""

import numpy as np
import pytest

from armpy import Network, ops
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .one_layer import quantized
from .support import isas_of_this_test, run_compiled

F32, S8, U8, BOOL = (
    DataType.FLOAT32,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.BOOLEAN,
)


@pytest.mark.parametrize("target", [S8, U8], ids=lambda t: t.name)
def test_casts_within_a_region_see_signed_bytes_as_they_are(target: DataType) -> None:
    stored = np.arange(-128, 128).astype(np.int8)
    network = Network()
    x = network.input("x", quantized((256,), S8, 0.5, 3))
    turned = network.add(ops.ReverseV2(axes=(0,)), x)
    real = network.add(ops.Cast(), turned, output=TensorInfo((256,), F32))
    again = network.add(ops.Cast(), real, output=quantized((256,), target, 0.5, 3))
    network.output("y", network.add(ops.ReverseV2(axes=(0,)), again))
    expected = stored if target is S8 else np.maximum(stored, 0)
    for isa in isas_of_this_test():
        np.testing.assert_array_equal(run_compiled(network, {"x": stored}, isa)["y"], expected)
