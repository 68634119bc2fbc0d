"""Networks whose shapes have to be known when they are loaded."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, OptimizerOptions, ops
from armpy.errors import InvalidArgumentError, LayerValidationError
from tests.support.networks import RELU, chain, f32, floats, i32
from tests.support.passes import run

VALIDATE = OptimizerOptions(shape_inference="validate_only")


def test_networks_of_known_shapes_run() -> None:
    got = run(chain(2), {"x": floats(1, 2, 3, 4)}, options=VALIDATE)
    np.testing.assert_array_equal(got["y"], floats(3, 4, 5, 6))


def test_open_dimensions_of_inputs_are_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"input 'x'.*is not known.*got \(\?, 3\)"):
        run(chain(1, (None, 3)), {}, options=VALIDATE)


def test_shapes_that_depend_on_values_are_refused_with_their_layer() -> None:
    net = Network()
    shape = net.input("shape", i32(2))
    net.output("y", net.add(RELU, net.add(ops.Reshape(), net.input("x", f32(6)), shape, name="r")))
    with pytest.raises(LayerValidationError, match=r"Reshape .r.: the shape of .r. is not known"):
        run(net, {}, options=VALIDATE)


def test_there_are_two_ways() -> None:
    with pytest.raises(InvalidArgumentError, match=r"shape_inference.*infer_and_validate or"):
        OptimizerOptions(shape_inference="guess")
