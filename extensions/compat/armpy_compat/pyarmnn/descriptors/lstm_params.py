"""Weights of `INetwork.AddLstmLayer` and `INetwork.AddQuantizedLstmLayer`."""

from __future__ import annotations

from armpy_compat.pyarmnn.fields import ScalarField
from armpy_compat.pyarmnn.swig import SwigObject
from armpy_compat.pyarmnn.tensors import ConstTensor


def _checked(value: object) -> ConstTensor | None:
    if value is not None and not isinstance(value, ConstTensor):
        raise TypeError("not a ConstTensor")
    return value


def _tensor() -> ScalarField[ConstTensor | None]:
    return ScalarField(None, "armnn::ConstTensor const *", _checked)


class LstmInputParams(SwigObject):
    """Weights and biases of an LSTM; None where there are none."""

    m_InputToInputWeights = _tensor()
    m_InputToForgetWeights = _tensor()
    m_InputToCellWeights = _tensor()
    m_InputToOutputWeights = _tensor()
    m_RecurrentToInputWeights = _tensor()
    m_RecurrentToForgetWeights = _tensor()
    m_RecurrentToCellWeights = _tensor()
    m_RecurrentToOutputWeights = _tensor()
    m_CellToInputWeights = _tensor()
    m_CellToForgetWeights = _tensor()
    m_CellToOutputWeights = _tensor()
    m_InputGateBias = _tensor()
    m_ForgetGateBias = _tensor()
    m_CellBias = _tensor()
    m_OutputGateBias = _tensor()
    m_ProjectionWeights = _tensor()
    m_ProjectionBias = _tensor()
    m_InputLayerNormWeights = _tensor()
    m_ForgetLayerNormWeights = _tensor()
    m_CellLayerNormWeights = _tensor()
    m_OutputLayerNormWeights = _tensor()


class QuantizedLstmInputParams(SwigObject):
    """Weights and biases of an LSTM of 8 and 16 bits; None where there are none."""

    m_InputToInputWeights = _tensor()
    m_InputToForgetWeights = _tensor()
    m_InputToCellWeights = _tensor()
    m_InputToOutputWeights = _tensor()
    m_RecurrentToInputWeights = _tensor()
    m_RecurrentToForgetWeights = _tensor()
    m_RecurrentToCellWeights = _tensor()
    m_RecurrentToOutputWeights = _tensor()
    m_InputGateBias = _tensor()
    m_ForgetGateBias = _tensor()
    m_CellBias = _tensor()
    m_OutputGateBias = _tensor()
