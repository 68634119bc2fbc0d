"""Rules in which the integer LSTMs differ: TFLite's over a sequence, NNAPI's single step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from armpy.core.numerics.rounding import Int64Array
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

_GATE_SCALE = 2.0**-12


class IntegerLstmRules(ABC):
    """Arithmetic in which an operation's LSTM differs from another's."""

    @abstractmethod
    def plain_gate(self, intermediate_scale: float, bias: Array) -> tuple[float, Array | None]:
        """Scale and bias of the sums of a gate that is not normalised."""

    @abstractmethod
    def least_variance(self, scale: np.float32) -> int:
        """Epsilon of layer normalisation: what stands for a variance of 0."""

    @abstractmethod
    def projection_clip_scale(self, infos: Mapping[str, TensorInfo], output: TensorInfo) -> float:
        """Scale by which the projection's limit is stored."""

    @abstractmethod
    def without_projection(self, hidden: Int64Array, zero_point: int) -> Int64Array:
        """Output state where there is no projection, not saturated."""


class SequenceRules(IntegerLstmRules):
    """Rules of TFLite's LSTM over a sequence.

    Reference: TFLite ``kernels/lstm_eval.cc`` (``EvalInteger8x8_16``).
    """

    def plain_gate(self, intermediate_scale: float, bias: Array) -> tuple[float, Array | None]:
        """12 fraction bits, with the bias."""
        return _GATE_SCALE, bias

    def least_variance(self, scale: np.float32) -> int:
        """Return the least variance by the scale of the coefficients."""
        return max(1, int(np.float32(10000) * scale))

    def projection_clip_scale(self, infos: Mapping[str, TensorInfo], output: TensorInfo) -> float:
        """Scale of the output."""
        return output.scale

    def without_projection(self, hidden: Int64Array, zero_point: int) -> Int64Array:
        """Return the sums with the zero point added."""
        return hidden + zero_point


class StepRules(IntegerLstmRules):
    """Rules of the single step that QUANTIZED_LSTM is.

    NNAPI's implementation left TFLite's at an early state and is followed:

    - sums have the intermediate scales, and biases are not used, without layer normalisation
      too; the sigmoid and tanh still read 12 fraction bits;
    - a variance of 0 counts as 1;
    - the hidden state's zero point is taken off where no projection follows;
    - the limit of the projection is stored by the scale of its weights.

    The LSTM differs from it in one thing: the peephole of the input and forget gates sees the cell
    state that comes in, as the operation's description says, not memory that is to be written.

    Reference: NNAPI QUANTIZED_LSTM.
    """

    def plain_gate(self, intermediate_scale: float, bias: Array) -> tuple[float, Array | None]:
        """Intermediate scale, no bias."""
        return intermediate_scale, None

    def least_variance(self, scale: np.float32) -> int:
        """One."""
        return 1

    def projection_clip_scale(self, infos: Mapping[str, TensorInfo], output: TensorInfo) -> float:
        """Scale of the projection's weights, if there is one."""
        return infos.get("projection_weights", output).scale

    def without_projection(self, hidden: Int64Array, zero_point: int) -> Int64Array:
        """Less the zero point."""
        return hidden - zero_point
