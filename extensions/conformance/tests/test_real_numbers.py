from __future__ import annotations

import numpy as np

from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.real_numbers import real_numbers

S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8


def test_real_numbers_of_stored_elements() -> None:
    info = TensorInfo((2, 2), S8, Quantization((0.5, 2.0), (0, 0), 1))
    stored = np.array([[1, 1], [-4, 3]], np.int8)
    assert real_numbers(stored, info).tolist() == [[0.5, 2.0], [-2.0, 6.0]]
    info = TensorInfo((2,), U8, Quantization((0.25,), (128,)))
    assert real_numbers(np.array([128, 0], np.uint8), info).tolist() == [0.0, -32.0]
    info = TensorInfo((1,), DataType.BFLOAT16)
    assert real_numbers(np.array([0x3FC0], np.uint16), info).tolist() == [1.5]
