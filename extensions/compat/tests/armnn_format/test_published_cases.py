"""Arm NN's published cases of its deserialiser give their published outputs on CpuRef."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy_testing.shared import SHARED

from ..armnn_texts import armnn_file
from .armnn_cases import (
    Elements,
    PublishedCase,
    published_cases,
)

_FOLDER = "armnn_tests/deserializer"
CASES = [
    case
    for path in sorted((SHARED / _FOLDER).glob("Deserialize*.cpp"))
    for case in published_cases(path)
]
NUM_CASES = 65
OFF_BY_STEPS = {"DeserializeDivision-DivisionQuantisedAsymm8": 1}
"""Steps by which quantised outputs may differ: 24 / 6 is published as 3, which Arm NN's own test
does not notice, as it lets every quantised output differ by a step.
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_published_case_gives_its_outputs(case: PublishedCase) -> None:
    data = armnn_file(case.text)
    with armpy.load(data, backends=["CpuRef"], front_end="armnn") as model:
        infos = {value.name: value.info for value in model.inputs}
        arrays = {
            name: np.array(elements, infos[name].data_type.dtype).reshape(infos[name].known_shape)
            for name, elements in _named(case.inputs, "input_0").items()
        }
        results = model.run(arrays)
    outputs = _named(case.outputs, "output_0")
    assert set(results) == set(outputs)
    for name, expected in outputs.items():
        result = results[name]
        wanted = np.array(expected, result.dtype).reshape(result.shape)
        largest = np.abs(wanted).max() if result.dtype.kind == "f" else 0
        steps = OFF_BY_STEPS.get(case.name, 0)
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * largest + steps)


def _named(elements: Elements, name: str) -> Elements:
    """Elements by the names that layers without one have in the network."""
    return {key or name: values for key, values in elements.items()}


def test_every_case_is_read() -> None:
    if not CASES:
        pytest.skip(f"test data {_FOLDER} is not beside the checkout")
    assert len(CASES) == NUM_CASES
