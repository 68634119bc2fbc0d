"""CpuRef's UnidirectionalSequenceLstm."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy_reference.lstm import WEIGHT_NAMES, LstmCell, by_name
from armpy_reference.lstm_float import FloatLstm
from armpy_reference.lstm_integer import IntegerLstm
from armpy_reference.workload import ReferenceWorkload


class UnidirectionalSequenceLstmWorkload(ReferenceWorkload[UnidirectionalSequenceLstm]):
    """Run an LSTM over a sequence; see `FloatLstm` and `IntegerLstm`."""

    def prepare(self) -> None:
        """Prepare the weights, if all of them are constants."""
        self._infos = by_name(self.info.inputs)
        weights = by_name(self.info.constants)
        is_constant = all(name in weights for name in WEIGHT_NAMES if name in self._infos)
        self._cell = self._make_cell(self.info.constants) if is_constant else None

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the sequence and the states after it."""
        cell = self._cell or self._make_cell(inputs)
        named = by_name(inputs)
        sequence, out = named["input"], outputs[2]
        if not self.operation.time_major:
            sequence, out = sequence.swapaxes(0, 1), out.swapaxes(0, 1)
        outputs[0][...], outputs[1][...] = cell.run(
            sequence, named["output_state_in"], named["cell_state_in"], out
        )

    def _make_cell(self, operands: Sequence[Array | None]) -> LstmCell:
        """Prepare the weights."""
        weights = {
            name: values for name, values in by_name(operands).items() if name in WEIGHT_NAMES
        }
        output = self.info.outputs[2]
        if output.data_type.is_quantized:
            return IntegerLstm(self.operation, self._infos, output, weights)
        return FloatLstm(self.operation, weights)
