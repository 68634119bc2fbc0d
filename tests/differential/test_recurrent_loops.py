"""LSTMs written as loops, on both backends, against LiteRT and against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy_testing.litert_oracle import litert_or_skip, run_litert
from armpy_testing.models.tflite_recurrent import Lstm
from tests.support.tflite_files import network_of

CASES = [
    Lstm(num_steps, num_features, num_units, gives_sequences)
    for num_steps, num_features, num_units in ((1, 3, 5), (7, 4, 4), (40, 32, 48))
    for gives_sequences in (False, True)
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize("lstm", CASES, ids=str)
def test_lstms_give_what_litert_and_numpy_give(lstm: Lstm, backend: str) -> None:
    litert_or_skip()
    data = lstm.model()
    shape = (1, lstm.num_steps, lstm.num_features)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    model = Model(network_of(data), Runtime(RuntimeOptions(backends=[backend])))
    expected = lstm.in_numpy(x)
    theirs = run_litert(data, [x])[0].astype(np.float64)
    np.testing.assert_allclose(theirs, expected, atol=1e-5)
    np.testing.assert_allclose(model(x), expected, atol=1e-5)
    assert model.placement is not None
    if backend == "NumbaAcc":  # all of it is one program
        assert model.placement.layers_by_backend.keys() == {"NumbaAcc"}
        assert not model.placement.refusals
