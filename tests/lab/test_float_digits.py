"""The example model of digits on real numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import armpy
from lab.float_digits import DIGITS, write_float_digits


def test_it_classifies_as_the_quantised_model_does(tmp_path: Path) -> None:
    write_float_digits(tmp_path / "digits.tflite")
    image = np.zeros((1, 16, 16, 1), np.float32)
    image[:, 3:13, 7:9] = 1.0
    real = armpy.load(tmp_path / "digits.tflite", backends=["CpuRef"])
    quantised = armpy.load(
        DIGITS, backends=["CpuRef"], quantize_inputs=True, dequantize_outputs=True
    )
    np.testing.assert_allclose(real(image), quantised(image), atol=0.02)
    assert np.argmax(real(image)) == 1
