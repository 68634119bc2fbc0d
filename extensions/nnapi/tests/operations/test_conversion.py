"""What NNAPI says of conversions beyond the table of types."""

from __future__ import annotations

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


def test_cast_ignores_quantisation() -> None:
    values = tensor(Q8A, [0, 200], 0.25, 128)

    assert run(O.CAST, [values], [output(F32, [2])])[0].tolist() == [0, 200]
    assert run(O.CAST, [values], [output(Q8A, [2], 4.0, 1)])[0].tolist() == [0, 200]


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda kind: kind.name)
def test_dequantize_uses_the_scale_of_each_channel(kind: OperandCode) -> None:
    values = tensor(Q8PC, [[1, 2], [-4, 127]], channel_quant=ChannelQuant((0.5, 2.0), 0))

    (result,) = run(O.DEQUANTIZE, [values], [output(kind, (2, 2))])

    assert result.dtype == kind.traits.dtype
    assert result.tolist() == [[0.5, 1], [-8, 254]]


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda kind: kind.name)
def test_quantize_rounds_halves_away_from_zero_and_saturates(kind: OperandCode) -> None:
    values = tensor(kind, [0.25, -0.25, 0.2, 1000, -1000])

    unsigned = run(O.QUANTIZE, [values], [output(Q8A, [5], 0.5, 100)])[0]
    signed = run(O.QUANTIZE, [values], [output(Q8S, [5], 0.5, -100)])[0]

    assert unsigned.tolist() == [101, 99, 100, 255, 0]
    assert signed.tolist() == [-99, -101, -100, 127, -128]
