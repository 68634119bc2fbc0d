"""The float LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import (
    BidirectionalSequenceLstm,
    Lstm,
    RecurrentActivation,
    UnidirectionalSequenceLstm,
)
from armpy.ops.operation import Array
from armpy_reference.recurrent.activation import Float32Array, activate, as_float32
from armpy_reference.recurrent.lstm import BIASES, GATES, LstmCell

FloatLstmOperation: TypeAlias = Lstm | UnidirectionalSequenceLstm | BidirectionalSequenceLstm

_VARIANCE_OFFSET = np.float32(1e-8)


class FloatLstm(LstmCell):
    """An LSTM in float32.

    float32 throughout; the result of float16 operands is rounded once, at the end. With the
    activation NONE the cell state goes out as it is, as NNAPI has it; TFLite's kernel then
    lets out the candidate, which its scratch memory still holds.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Operands of one LSTM by name, float16 or float32.

    References
    ----------
    TFLite ``kernels/lstm_eval.cc`` (``EvalFloat``); NNAPI LSTM,
    UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM.
    """

    def __init__(self, operation: FloatLstmOperation, weights: Mapping[str, Array]) -> None:
        self._operation = operation
        self._weights = {name: as_float32(values) for name, values in weights.items()}
        self._gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]

    def input_share(self, sequence: Array) -> dict[str, Float32Array]:
        """Bias (which layer normalisation adds later) and weighted input."""
        values = as_float32(sequence)
        shares = {}
        for gate in self._gates:
            shares[gate] = values @ self._weights[f"input_to_{gate}_weights"].T
            if f"{gate}_layer_norm_weights" not in self._weights:
                shares[gate] += self._weights[BIASES[gate]]
        return shares

    def step(
        self,
        share: Mapping[str, Float32Array],
        output_state: npt.NDArray[Any],
        cell_state: npt.NDArray[Any],
    ) -> tuple[Float32Array, Float32Array]:
        """Compute the states after one time step."""
        operation = self._operation
        hidden, cell = as_float32(output_state), as_float32(cell_state)
        sigmoid = RecurrentActivation.SIGMOID
        forget = activate(self._gate("forget", share, hidden, cell), sigmoid)
        candidate = activate(self._gate("cell", share, hidden, cell), operation.activation)
        if "input" in self._gates:
            update = activate(self._gate("input", share, hidden, cell), sigmoid)
        else:
            update = np.float32(1) - forget
        cell = _clip(forget * cell + update * candidate, operation.cell_clip)
        passed = activate(self._gate("output", share, hidden, cell), sigmoid)
        return self._project(passed * activate(cell, operation.activation)), cell

    def _gate(
        self, gate: str, share: Mapping[str, Float32Array], hidden: Float32Array, cell: Float32Array
    ) -> Float32Array:
        """One gate ahead of its activation."""
        weights = self._weights
        values = share[gate] + hidden @ weights[f"recurrent_to_{gate}_weights"].T
        peephole = weights.get(f"cell_to_{gate}_weights")
        if peephole is not None:
            values += peephole * cell
        coefficients = weights.get(f"{gate}_layer_norm_weights")
        if coefficients is not None:
            values = _normalize(values) * coefficients + weights[BIASES[gate]]
        return values

    def _project(self, hidden: Float32Array) -> Float32Array:
        """Output state after the output gate."""
        projection = self._weights.get("projection_weights")
        if projection is None:
            return hidden
        projected = hidden @ projection.T
        bias = self._weights.get("projection_bias")
        if bias is not None:
            projected += bias
        return _clip(projected, self._operation.projection_clip)


def _normalize(values: Float32Array) -> Float32Array:
    """Give each row mean 0 and variance 1."""
    centred = values - values.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    normalized: Float32Array = centred / np.sqrt(variance + _VARIANCE_OFFSET)
    return normalized


def _clip(values: Float32Array, limit: float) -> Float32Array:
    """Limit absolute values; 0 is not a limit."""
    return np.clip(values, np.float32(-limit), np.float32(limit)) if limit > 0 else values
