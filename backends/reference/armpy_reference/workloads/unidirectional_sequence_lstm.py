"""CpuRef's UnidirectionalSequenceLstm."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy_reference.recurrent.lstm import LstmCell
from armpy_reference.recurrent.lstm_float import FloatLstm
from armpy_reference.recurrent.lstm_integer import IntegerLstm
from armpy_reference.recurrent.lstm_integer_rules import SequenceRules
from armpy_reference.recurrent.operands import by_name, time_major, weights_of
from armpy_reference.recurrent.workload import CellWorkload


class UnidirectionalSequenceLstmWorkload(CellWorkload[UnidirectionalSequenceLstm, LstmCell]):
    """Run an LSTM over a sequence; see `FloatLstm` and `IntegerLstm`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the sequence and the states after it."""
        cell = self.cell_for(inputs)
        named = by_name(self.operation, inputs)
        outputs[0][...], outputs[1][...] = cell.run(
            time_major(named["input"], self.operation.time_major),
            named["output_state_in"],
            named["cell_state_in"],
            time_major(outputs[2], self.operation.time_major),
        )

    def make_cell(self, operands: Sequence[Array | None]) -> LstmCell:
        """Prepare the weights."""
        weights = weights_of(self.operation, operands)
        output = self.info.outputs[2]
        if output.data_type.is_quantized:
            infos = by_name(self.operation, self.info.inputs)
            return IntegerLstm(self.operation, infos, output, weights, SequenceRules())
        return FloatLstm(self.operation, weights)
