"""CpuRef's Lstm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Lstm
from armpy.ops.operation import Array
from armpy_reference.lstm_float import FloatLstm
from armpy_reference.recurrent_operands import by_name, has_constant_weights, weights_of
from armpy_reference.workload import ReferenceWorkload


class LstmWorkload(ReferenceWorkload[Lstm]):
    """Run an LSTM for one time step, see `FloatLstm`; the scratch output is zeros."""

    def prepare(self) -> None:
        """Prepare the weights, if all of them are constants."""
        is_constant = has_constant_weights(self.operation, self.info)
        self._cell = self._make_cell(self.info.constants) if is_constant else None

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the new states."""
        cell = self._cell or self._make_cell(inputs)
        named = by_name(self.operation, inputs)
        scratch, output_state, cell_state, output = outputs
        output_state[...], cell_state[...] = cell.run(
            named["input"][np.newaxis],
            named["output_state_in"],
            named["cell_state_in"],
            output[np.newaxis],
        )
        scratch[...] = 0

    def _make_cell(self, operands: Sequence[Array | None]) -> FloatLstm:
        """Prepare the weights."""
        return FloatLstm(self.operation, weights_of(self.operation, operands))
