"""What is no number stays so after an activation, as in CpuRef, on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa

from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.ops.operation import Array

from .support import ISA_NAMES, ISAS, run_compiled, run_reference

RELU6 = ops.FusedActivation.RELU6
SAME = ops.Padding.SAME
FEWER_PRODUCTS = ops.Convolution2d(padding=SAME, activation=RELU6)


def network_of(
    operation: ops.Operation, image: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[Network, dict[str, Array]]:
    """A network of one layer, and an input with one element that is not a number."""
    random = np.random.default_rng(5)
    network = Network()
    x = network.input("x", TensorInfo(image, DataType.FLOAT32))
    values = network.constant(random.normal(size=weights).astype(np.float32))
    network.output("y", network.add(operation, x, values))
    elements: Array = random.normal(size=image).astype(np.float32)
    elements[(0, *(size // 2 for size in image[1:]))] = np.nan
    return network, {"x": elements}


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_with_fewer_products_neighbours_may_become_no_number_too(isa: Isa) -> None:
    network, inputs = network_of(FEWER_PRODUCTS, (1, 12, 12, 16), (32, 3, 3, 16))
    expected = run_reference(network, inputs)["y"]
    actual = run_compiled(network, inputs, isa)["y"]
    assert np.isnan(actual[np.isnan(expected)]).all()
    far = np.ix_([0], [0, 1, 10, 11], [0, 1, 10, 11], range(32))
    np.testing.assert_allclose(actual[far], expected[far], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_placement_says_why_a_transposed_convolution_is_cpu_refs(odd: float) -> None:
    weights = np.ones((3, 2, 2, 4), np.float32)
    weights[1, 1, 0, 2] = odd
    network = Network()
    image = network.input("x", TensorInfo((1, 5, 5, 4), DataType.FLOAT32))
    operation = ops.TransposeConvolution2d(stride=(2, 2))
    layer = network.add_layer(operation, [image, network.constant(weights)], name="spread")
    network.output("y", layer.output)
    with Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])) as runtime:
        placement = runtime.get_network(runtime.load_network(network)).placement
        assert placement is not None
        assert placement.layers_by_backend == {"CpuRef": 1}
        assert "weights that are NaN or infinite are not supported" in str(placement)
