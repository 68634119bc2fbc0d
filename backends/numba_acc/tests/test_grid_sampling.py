"""Samples of images and volumes: like CpuRef, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, ops
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    check_against_reference,
    isas_of_this_test,
    random_array,
)

IMAGES = (
    ((2, 5, 7, 21), (2, 3, 11, 2)),
    ((1, 1, 6, 3), (1, 4, 1, 2)),
    ((3, 4, 1, 1), (3, 1, 5, 2)),
    ((0, 4, 3, 2), (0, 2, 2, 2)),
    ((2, 3, 4, 5, 4), (2, 2, 3, 4, 3)),
)
ODD = (np.nan, np.inf, -np.inf, 1.0, -1.0, 0.0, 1e6, -3e4, 2.5, -7.25)


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("padding", ops.GridPadding)
@pytest.mark.parametrize("mode", ops.SampleMode)
def test_samples_are_those_of_the_reference(mode: ops.SampleMode, padding: ops.GridPadding) -> None:
    random, network, given = np.random.default_rng(9), Network(), {}
    for number, (shape, places) in enumerate(IMAGES):
        image = random_array(TensorInfo(shape, DataType.FLOAT32), number)
        image.flat[::17] = np.inf
        grid = random.uniform(-2, 2, places).astype(np.float32)
        odd = random.integers(0, 4, places) == 0
        grid[odd] = random.choice(ODD, places)[odd]
        values = []
        for name, array in ((f"x{number}", image), (f"grid{number}", grid)):
            given[name] = array
            values.append(network.input(name, TensorInfo(array.shape, DataType.FLOAT32)))
        for aligned in (False, True):
            layer = network.add(ops.GridSample(mode, padding, aligned), *values)
            network.output(f"y{number} {aligned}", layer)
    with np.errstate(invalid="ignore"):
        for isa in isas_of_this_test():
            check_against_reference(network, given, isa, tolerance=EXACT)


def test_samples_by_hand() -> None:
    network = Network()
    x = network.input("x", TensorInfo((1, 2, 2, 1), DataType.FLOAT32))
    grid = network.input("grid", TensorInfo((1, 1, 3, 2), DataType.FLOAT32))
    network.output("y", network.add(ops.GridSample(align_corners=True), x, grid))
    given = {
        "x": np.array([1, 2, 3, 4], np.float32).reshape(1, 2, 2, 1),
        "grid": np.array([[-1, -1], [0, 0], [1, 3]], np.float32).reshape(1, 1, 3, 2),
    }
    expected = {"y": np.array([1, 2.5, 0], np.float32).reshape(1, 1, 3, 1)}
    for isa in isas_of_this_test():
        check_against_reference(network, given, isa, expected, EXACT)
