"""CpuRef's QuantizedLstm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier, multiply_high
from armpy.core.numerics.rounding import Int64Array, rounding_shift_right
from armpy.ops import QuantizedLstm
from armpy.ops.operation import Array
from armpy_reference.recurrent.lstm import BIASES, GATES
from armpy_reference.recurrent.lstm_fixed_point import saturate, sigmoid, tanh
from armpy_reference.recurrent.operands import by_name
from armpy_reference.workload import ReferenceWorkload

_DATA_ZERO_POINT = 128
_GATE_BITS = 12
# The cell state has four integer bits, gates three, outputs none.
_CELL_INTEGER_BITS = 4
_OUTPUT_SHIFT = 8


class QuantizedLstmWorkload(ReferenceWorkload[QuantizedLstm]):
    """Run a plain LSTM in integers for one time step.

    Implementations join input and output state in this order, but recurrent weights and
    input weights in that one, and multiply the two. NNAPI's test vectors expect it, so it is
    what the operation means: the first columns of the recurrent weights meet the input.

    int32 accumulation of products without zero points; gates and cell state int16,
    products of these rounded half up, shifts half away from zero, saturated.

    Reference: NNAPI QUANTIZED_16BIT_LSTM; TFLite ``kernels/internal/reference/lstm_cell.h``.
    """

    def prepare(self) -> None:
        """Work out the multiplier to a gate's scale."""
        weights = by_name(self.operation, self.input_infos)["input_to_input_weights"]
        self._weights_zero_point = weights.zero_point
        bias_scale = np.float32(weights.scale) / np.float32(128)
        self._to_gate = Multiplier.from_real(float(2**_GATE_BITS * bias_scale))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the new states."""
        named = by_name(self.operation, inputs)
        # Input first here but recurrent weights first below: see the notes.
        data = np.concatenate([named["input"], named["output_state_in"]], axis=1)
        centred = data.astype(np.float64) - _DATA_ZERO_POINT
        gates = {gate: self._gate(gate, centred, named) for gate in GATES}
        gain = multiply_high(sigmoid(gates["input"]), tanh(gates["cell"], 3), bits=16)
        rounding_shift_right(gain, _CELL_INTEGER_BITS, out=gain)
        carried = multiply_high(sigmoid(gates["forget"]), named["cell_state_in"], bits=16)
        cell = saturate(gain + carried)
        passed = tanh(saturate(2 * cell), _CELL_INTEGER_BITS - 1)
        output = multiply_high(sigmoid(gates["output"]), passed, bits=16)
        rounding_shift_right(output, _OUTPUT_SHIFT, out=output)
        outputs[0][...] = cell
        outputs[1][...] = np.clip(output, -128, 127) + _DATA_ZERO_POINT

    def _gate(
        self, gate: str, centred: npt.NDArray[np.float64], named: Mapping[str, Array]
    ) -> Int64Array:
        """One gate ahead of its activation, with 12 fraction bits."""
        parts = [named[f"{source}_to_{gate}_weights"] for source in ("recurrent", "input")]
        weights = np.concatenate(parts, axis=1).astype(np.float64) - self._weights_zero_point
        # Sums of 8-bit products are exact in float64, whose product is the quick one.
        sums = (centred @ weights.T).astype(np.int64) + named[BIASES[gate]]
        return saturate(self._to_gate.apply(sums))
