"""The integer LSTM: 8-bit weights and activations, 16-bit gates and cell state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.fixed_point import Multiplier, quantize_multiplier
from armpy.core.numerics.gemmlowp import inverse_sqrt_multiplier
from armpy.core.numerics.rounding import Int64Array
from armpy.ops import QLstm, UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.recurrent.lstm import BIASES, GATES, LstmCell
from armpy_reference.recurrent.lstm_fixed_point import (
    LARGEST,
    saturate,
    shifted_product,
    sigmoid,
    tanh,
    truncated_quotient,
)
from armpy_reference.recurrent.lstm_integer_rules import IntegerLstmRules

# Normalised values have 10 fraction bits; the gate's 12 come on top of the weights' scale.
_NORMALIZED_BITS = 10
_GATE_BITS = 12


@dataclass(frozen=True, slots=True)
class _Product:
    """Requantised matrix product: weights, bias and multiplier."""

    weights: npt.NDArray[np.float64]
    bias: Int64Array
    rescale: Multiplier

    @classmethod
    def make(cls, weights: Array, bias: Array | None, offset: int, scale: np.float32) -> _Product:
        """Move the offset that is to be added to all inputs into the bias."""
        total = weights.sum(axis=1, dtype=np.int64) * offset
        if bias is not None:
            total += bias
        # Sums of int8 products are exact in float64, whose product is the quick one.
        return cls(weights.T.astype(np.float64), total, Multiplier.from_real(float(scale)))

    def apply(self, values: npt.NDArray[Any]) -> Int64Array:
        """Multiply, add the bias, rescale; not saturated."""
        sums = (values.astype(np.float64) @ self.weights).astype(np.int64)
        sums += self.bias
        self.rescale.apply(sums, out=sums)
        return sums


@dataclass(frozen=True, slots=True)
class _Peephole:
    """Peephole connection: the cell state's share of a gate."""

    weights: Int64Array
    rescale: Multiplier

    def apply(self, cell: Int64Array) -> Int64Array:
        """Weighted cell state, not saturated."""
        return self.rescale.apply(self.weights * cell)


@dataclass(frozen=True, slots=True)
class _Normalization:
    """Layer normalisation of a gate."""

    weights: Int64Array
    bias: Int64Array
    rescale: Multiplier
    least_variance: int

    @classmethod
    def make(
        cls, weights: Array, bias: Array, scale: np.float32, least_variance: int
    ) -> _Normalization:
        """Prepare the multiplier to the gate's scale."""
        multiplier, shift = quantize_multiplier(float(scale))
        rescale = Multiplier.from_pairs([(multiplier, shift + _GATE_BITS)], ())
        return cls(weights.astype(np.int64), bias.astype(np.int64), rescale, least_variance)

    def apply(self, values: Int64Array) -> Int64Array:
        """Give each row mean 0 and variance 1, then weigh and add the bias."""
        size = values.shape[1]
        unit = 1 << (2 * _NORMALIZED_BITS)
        mean = truncated_quotient(values.sum(axis=1, keepdims=True) << _NORMALIZED_BITS, size)
        # The reference's quotient is exact for sizes that are powers of two only.
        squares = np.square(values).sum(axis=1, keepdims=True) * (unit // size)
        variance = truncated_quotient(squares - mean * mean, unit)
        variance[variance < 1] = self.least_variance
        multiplier, shift = inverse_sqrt_multiplier(variance)
        to_normalized = Multiplier(multiplier, np.zeros_like(shift), -shift)
        normalized = to_normalized.apply((values << _NORMALIZED_BITS) - mean)
        weighted = normalized * self.weights + self.bias
        half = 1 << (_NORMALIZED_BITS - 1)
        weighted += np.where(weighted > 0, half, -half)
        return saturate(self.rescale.apply(truncated_quotient(weighted, 1 << _NORMALIZED_BITS)))


@dataclass(frozen=True, slots=True)
class _LstmGate:
    """Everything that makes one gate."""

    from_input: _Product
    from_output: _Product
    peephole: _Peephole | None
    normalization: _Normalization | None

    def values(self, share: Int64Array, hidden: Array, cell: Int64Array) -> Int64Array:
        """Sum of the shares with 12 fraction bits, saturated after each."""
        total = saturate(share + self.from_output.apply(hidden))
        if self.peephole is not None:
            total = saturate(total + self.peephole.apply(cell))
        return total if self.normalization is None else self.normalization.apply(total)


class IntegerLstm(LstmCell):
    """An LSTM in integers.

    Gates have 12 fraction bits and saturate to int16 after each share is added. Effective
    scales are float32 products, as in the reference. With projection and peephole the
    reference applies the peephole to the first o cells of n only: of each row if
    batch-major, of the batch's rows laid end to end if time-major; so does this.

    Parameters
    ----------
    infos : mapping of str to TensorInfo
        Operands by name.
    output : TensorInfo
        The sequence that comes out.
    weights : mapping of str to ndarray
        Constant operands by name.
    rules : IntegerLstmRules
        Where the operations' arithmetic differs.

    References
    ----------
    TFLite ``kernels/lstm_eval.cc`` (``EvalInteger8x8_16``) and
    ``kernels/unidirectional_sequence_lstm.cc`` (``PopulateQuantizedLstmParams8x8_16``).
    """

    def __init__(
        self,
        operation: UnidirectionalSequenceLstm | QLstm,
        infos: Mapping[str, TensorInfo],
        output: TensorInfo,
        weights: Mapping[str, Array],
        rules: IntegerLstmRules,
    ) -> None:
        self._operation, self._infos, self._weights = operation, infos, weights
        self._rules = rules
        self._cell_exponent = round(math.log2(infos["cell_state_in"].scale))
        self._output_zero_point = infos["output_state_in"].zero_point
        gates = (gate for gate in GATES if f"input_to_{gate}_weights" in weights)
        self._gates = {gate: self._make_gate(gate) for gate in gates}
        hidden_scale = np.float32(operation.hidden_state_scale)
        to_hidden = np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15)
        self._to_hidden = Multiplier.from_real(float(to_hidden))
        self._projection = self._make_projection(hidden_scale)
        self._cell_clip = _stored_clip(operation.cell_clip, infos["cell_state_in"].scale, LARGEST)
        clip = operation.projection_clip
        self._projection_clip = _stored_clip(clip, rules.projection_clip_scale(infos, output), 127)

    def _scale(self, name: str) -> np.float32:
        """Return an operand's scale as the file has it."""
        return np.float32(self._infos[name].scale)

    def _make_gate(self, gate: str) -> _LstmGate:
        """Gather a gate's operands and work out its multipliers."""
        bias, normalization = self._weights[BIASES[gate]], None
        coefficients = self._weights.get(f"{gate}_layer_norm_weights")
        intermediate_scale: float = getattr(self._operation, f"{gate}_intermediate_scale")
        if coefficients is None:
            gate_scale, sum_bias = self._rules.plain_gate(intermediate_scale, bias)
        else:
            scale = self._scale(f"{gate}_layer_norm_weights")
            least_variance = self._rules.least_variance(scale)
            normalization = _Normalization.make(coefficients, bias, scale, least_variance)
            gate_scale, sum_bias = intermediate_scale, None
        return _LstmGate(
            self._make_product(f"input_to_{gate}_weights", "input", gate_scale, sum_bias),
            self._make_product(f"recurrent_to_{gate}_weights", "output_state_in", gate_scale),
            self._make_peephole(gate, gate_scale),
            normalization,
        )

    def _is_peephole_laid_out(self) -> bool:
        """Return whether the peephole takes the batch's rows as one."""
        return isinstance(self._operation, QLstm) or self._operation.time_major

    def _make_product(
        self, name: str, operand: str, gate_scale: float, bias: Array | None = None
    ) -> _Product:
        """Gather what an operand adds to a gate."""
        scale = self._scale(name) * self._scale(operand) / np.float32(gate_scale)
        return _Product.make(self._weights[name], bias, -self._infos[operand].zero_point, scale)

    def _make_peephole(self, gate: str, gate_scale: float) -> _Peephole | None:
        """Weights (b, n) of the cells, 0 where the reference does not come to."""
        name = f"cell_to_{gate}_weights"
        weights = self._weights.get(name)
        if weights is None:
            return None
        batch, cells = self._infos["cell_state_in"].known_shape
        width = min(self._infos["output_state_in"].known_shape[1], cells)
        spread = np.zeros((batch, cells), np.int64)
        if self._is_peephole_laid_out():
            spread.reshape(-1)[: batch * width] = np.tile(weights[:width], batch)
        else:
            spread[:, :width] = weights[:width]
        scale = 2.0**self._cell_exponent * float(self._scale(name)) / float(np.float32(gate_scale))
        return _Peephole(spread, Multiplier.from_real(float(np.float32(scale))))

    def _make_projection(self, hidden_scale: np.float32) -> _Product | None:
        """Gather the projection's operands and work out its multiplier."""
        weights = self._weights.get("projection_weights")
        if weights is None:
            return None
        scale = self._scale("projection_weights") * hidden_scale / self._scale("output_state_in")
        bias = self._weights.get("projection_bias")
        return _Product.make(weights, bias, self._operation.hidden_state_zero_point, scale)

    def input_share(self, sequence: Array) -> dict[str, Int64Array]:
        """Bias (which layer normalisation adds later) and weighted input."""
        return {
            name: saturate(gate.from_input.apply(sequence)) for name, gate in self._gates.items()
        }

    def step(
        self,
        share: Mapping[str, Int64Array],
        output_state: npt.NDArray[Any],
        cell_state: npt.NDArray[Any],
    ) -> tuple[Int64Array, Int64Array]:
        """Compute the states after one time step."""
        gates, hidden, cell = self._gates, output_state, cell_state.astype(np.int64)
        forget = sigmoid(gates["forget"].values(share["forget"], hidden, cell))
        candidate = tanh(gates["cell"].values(share["cell"], hidden, cell), 3)
        if "input" in gates:
            update = sigmoid(gates["input"].values(share["input"], hidden, cell))
        else:
            update = LARGEST - forget
        cell = shifted_product(forget, cell, 15)
        cell = saturate(cell + shifted_product(update, candidate, 30 + self._cell_exponent))
        if self._cell_clip > 0:
            np.clip(cell, -self._cell_clip, self._cell_clip, out=cell)
        passed = sigmoid(gates["output"].values(share["output"], hidden, cell))
        return self._output(passed * tanh(cell, 15 + self._cell_exponent)), cell

    def _output(self, passed: Int64Array) -> Int64Array:
        """Output state after the output gate, with 30 fraction bits."""
        hidden = self._to_hidden.apply(passed)
        zero_point = self._operation.hidden_state_zero_point
        if self._projection is None:
            return np.clip(self._rules.without_projection(hidden, zero_point), -128, 127)
        projected = self._projection.apply(np.clip(hidden - zero_point, -128, 127))
        projected = np.clip(projected + self._output_zero_point, -128, 127)
        if self._projection_clip > 0:
            np.clip(projected, -self._projection_clip, self._projection_clip, out=projected)
        return projected


def _stored_clip(clip: float, scale: float, highest: int) -> int:
    """Limit as a stored integer; 0 is not a limit."""
    return min(int(np.float32(clip) / np.float32(scale)), highest) if clip > 0 else 0
