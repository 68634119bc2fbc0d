"""Programs read and write imported memory where it lies."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import ExternalMemory, Model
from armpy.ops.operation import Array

from .networks import convolutions, image, runtime_of

X = image(size=8, channels=4)["x"]


def memory_of(elements: Array, kind: str) -> ExternalMemory:
    """Memory of a kind with some elements."""
    if kind == "MALLOC":
        return ExternalMemory.of_array(elements.copy())
    memory = ExternalMemory.shared(elements.nbytes)
    memory.map()[:] = elements.reshape(-1).view(np.uint8)
    return memory


@pytest.mark.parametrize("kind", ["MALLOC", "SHARED_MEMORY"])
def test_imported_inputs_and_outputs_are_used_in_place(kind: str) -> None:
    with Model(convolutions(8, 4), runtime_of()) as model:
        expected, of_zeros = model.run({"x": X})["y"], model.run({"x": 0 * X})["y"]
        source, target = memory_of(np.zeros_like(X), kind), memory_of(np.zeros_like(X), kind)
        x = model.import_inputs({"x": source})["x"]
        y = model.import_outputs({"y": target})["y"]
        assert x.backends == y.backends == ("NumbaAcc",)
        np.asarray(x)[...] = X
        model.run({"x": x}, {"y": y})
        np.testing.assert_array_equal(np.asarray(y), expected)
        execution = model.bind({"x": x}, {"y": y})
        np.asarray(x)[...] = 0
        execution()
        np.testing.assert_array_equal(np.asarray(y), of_zeros)
