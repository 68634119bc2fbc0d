"""CpuRef's QLstm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import QLstm
from armpy.ops.operation import Array
from armpy_reference.recurrent.lstm_integer import IntegerLstm
from armpy_reference.recurrent.lstm_integer_rules import StepRules
from armpy_reference.recurrent.operands import by_name, weights_of
from armpy_reference.recurrent.workload import CellWorkload


class QLstmWorkload(CellWorkload[QLstm, IntegerLstm]):
    """Run an integer LSTM for one time step; see `IntegerLstm` and `StepRules`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the new states."""
        cell = self.cell_for(inputs)
        named = by_name(self.operation, inputs)
        outputs[0][...], outputs[1][...] = cell.run(
            named["input"][np.newaxis],
            named["output_state_in"],
            named["cell_state_in"],
            outputs[2][np.newaxis],
        )

    def make_cell(self, operands: Sequence[Array | None]) -> IntegerLstm:
        """Prepare the weights."""
        infos = by_name(self.operation, self.info.inputs)
        weights = weights_of(self.operation, operands)
        return IntegerLstm(self.operation, infos, self.info.outputs[2], weights, StepRules())
