"""The integer LSTM of NNAPI's and Arm NN's single step, where it is not TFLite's."""

from __future__ import annotations

import numpy as np

from armpy.core.numerics.rounding import Int64Array
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.lstm_integer import IntegerLstm


class IntegerLstmStep(IntegerLstm):
    """An LSTM in integers as QUANTIZED_LSTM has it.

    Notes
    -----
    NNAPI's implementation left TFLite's at an early state and is followed in what it does:

    - sums have the intermediate scales, and biases are not used, without layer normalisation
      too; the sigmoid and tanh still read 12 fraction bits;
    - a variance of 0 counts as 1;
    - the hidden state's zero point is taken off where no projection follows;
    - the limit of the projection is stored by the scale of its weights.

    It differs in one thing: the peephole of the input and forget gates sees the cell state
    that comes in, as the operation's description says, not memory that is to be written.

    References
    ----------
    NNAPI QUANTIZED_LSTM.
    """

    def _plain_gate(self, gate: str, bias: Array) -> tuple[float, Array | None]:
        """No bias."""
        return self._intermediate_scale(gate), None

    def _least_variance(self, scale: np.float32) -> int:
        """One."""
        return 1

    def _projection_clip_scale(self, output: TensorInfo) -> float:
        """Scale of the projection's weights, if there is one."""
        weights = self._infos.get("projection_weights", output)
        return weights.scale

    def _without_projection(self, hidden: Int64Array) -> Int64Array:
        """Less the zero point."""
        return hidden - self._operation.hidden_state_zero_point
