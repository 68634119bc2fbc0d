"""What NNAPI says of conversions beyond the table of types."""

from __future__ import annotations

import numpy as np
import pytest

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import ChannelQuant

from .nnapi_operation import output, run, tensor

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
Q8PC, Q16A = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL, OperandCode.TENSOR_QUANT16_ASYMM
O = OperationCode  # noqa: E741  # stands before every name


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda kind: kind.name)
def test_cast_of_floats_truncates_and_saturates(kind: OperandCode) -> None:
    values = tensor(kind, [-1.5, -0.5, 2.9, 255.9, 300])

    assert run(O.CAST, [values], [output(I32, [5])])[0].tolist() == [-1, 0, 2, 255, 300]
    stored = run(O.CAST, [values], [output(Q8A, [5], 0.5, 100)])[0]
    assert stored.tolist() == [0, 0, 2, 255, 255]


def test_cast_of_integers_to_unsigned_saturates() -> None:
    values = tensor(I32, [-1, 7, 256])

    assert run(O.CAST, [values], [output(Q8A, [3], 1.0, 3)])[0].tolist() == [0, 7, 255]


def test_cast_ignores_quantisation() -> None:
    values = tensor(Q8A, [0, 200], 0.25, 128)

    assert run(O.CAST, [values], [output(F32, [2])])[0].tolist() == [0, 200]
    assert run(O.CAST, [values], [output(Q8A, [2], 4.0, 1)])[0].tolist() == [0, 200]


def test_cast_between_equal_types_keeps_what_is_stored() -> None:
    values = tensor(Q16A, [7, 65535], 0.125, 0)

    assert run(O.CAST, [values], [output(Q16A, [2], 0.5, 9)])[0].tolist() == [7, 65535]


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda kind: kind.name)
def test_dequantize_uses_the_scale_of_each_channel(kind: OperandCode) -> None:
    values = tensor(Q8PC, [[1, 2], [-4, 127]], channel_quant=ChannelQuant((0.5, 2.0), 0))

    (result,) = run(O.DEQUANTIZE, [values], [output(kind, (2, 2))])

    assert result.dtype == kind.traits.dtype
    assert result.tolist() == [[0.5, 1], [-8, 254]]


def test_dequantize_rounds_to_half_floats() -> None:
    # Thirds of 127 and -128 are 42.333 and -42.667; half floats around 42 are 1/32 apart.
    values = tensor(Q8S, [127, -128], 1 / 3, 0)

    (result,) = run(O.DEQUANTIZE, [values], [output(F16, [2])])

    assert result.tolist() == [42 + 11 / 32, -42 - 21 / 32]


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda kind: kind.name)
def test_quantize_rounds_halves_away_from_zero_and_saturates(kind: OperandCode) -> None:
    values = tensor(kind, [0.25, -0.25, 0.2, 1000, -1000])

    unsigned = run(O.QUANTIZE, [values], [output(Q8A, [5], 0.5, 100)])[0]
    signed = run(O.QUANTIZE, [values], [output(Q8S, [5], 0.5, -100)])[0]

    assert unsigned.tolist() == [101, 99, 100, 255, 0]
    assert signed.tolist() == [-99, -101, -100, 127, -128]


def test_conversions_take_tensors_without_elements() -> None:
    assert run(O.QUANTIZE, [tensor(F32, np.zeros((0, 3)))], [output(Q8A, (0, 3), 1.0)])[0].size == 0
    empty = tensor(Q8A, np.zeros((0, 3)), 1.0)
    assert run(O.DEQUANTIZE, [empty], [output(F32, (0, 3))])[0].shape == (0, 3)
