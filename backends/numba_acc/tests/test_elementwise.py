"""Axes of elementwise operations, and their refusals."""

from armpy_numba_acc.lowering.broadcasting import collapsed
from armpy_numba_acc.passes.support import support

from armpy import ops
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .one_layer import (
    quantized,
)

F32, S8, U8 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8
I32, I64, BOOL = DataType.SIGNED32, DataType.SIGNED64, DataType.BOOLEAN


def test_axes_are_joined_where_all_inputs_run_alike() -> None:
    assert collapsed([(2, 3, 4), (2, 3, 4)], (2, 3, 4)) == [(24, (1, 1))]
    assert collapsed([(2, 3, 4), (4,)], (2, 3, 4)) == [(6, (4, 0)), (4, (1, 1))]
    assert collapsed([(2, 3, 4), (2, 1, 1)], (2, 3, 4)) == [(2, (12, 1)), (12, (1, 0))]
    assert collapsed([(1, 1), (1,)], (1, 1)) == [(1, (1, 1))]


def test_what_cannot_be_lowered_says_why() -> None:
    info = TensorInfo((2, 3), I32)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.POWER), [info, info], [info])
    assert not refusal
    assert "POWER of SIGNED32 is not supported" in str(refusal)
    for function in ("ASIN", "TAN", "ACOSH"):
        info = TensorInfo((2, 3), F32)
        refusal = support(ops.ElementwiseUnary(ops.UnaryOperation[function]), [info], [info])
        assert f"{function} of FLOAT32 is not supported" in str(refusal)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.ATAN2), [info, info], [info])
    assert "ATAN2 of FLOAT32 is not supported" in str(refusal)
    info = quantized((2, 3), U8, 0.1, 3)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.FLOOR_MOD), [info, info], [info])
    assert "FLOOR_MOD of QASYMM_U8 is not supported" in str(refusal)
    info = TensorInfo((2, 3), DataType.FLOAT64)
    assert "FLOAT64 is not supported" in str(support(ops.ElementwiseBinary(), [info, info], [info]))
    info = TensorInfo((2, 3), DataType.SIGNED64)
    refusal = support(ops.Prelu(), [info, info], [info])
    assert "SIGNED64 is not supported" in str(refusal)
