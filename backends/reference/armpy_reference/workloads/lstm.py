"""CpuRef's Lstm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Lstm
from armpy.ops.operation import Array
from armpy_reference.recurrent.lstm_float import FloatLstm
from armpy_reference.recurrent.operands import by_name, weights_of
from armpy_reference.recurrent.workload import CellWorkload


class LstmWorkload(CellWorkload[Lstm, FloatLstm]):
    """Run an LSTM for one time step, see `FloatLstm`; the scratch output is zeros."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the new states."""
        cell = self.cell_for(inputs)
        named = by_name(self.operation, inputs)
        scratch, output_state, cell_state, output = outputs
        output_state[...], cell_state[...] = cell.run(
            named["input"][np.newaxis],
            named["output_state_in"],
            named["cell_state_in"],
            output[np.newaxis],
        )
        scratch[...] = 0

    def make_cell(self, operands: Sequence[Array | None]) -> FloatLstm:
        """Prepare the weights."""
        return FloatLstm(self.operation, weights_of(self.operation, operands))
