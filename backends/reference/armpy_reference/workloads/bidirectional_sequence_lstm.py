"""CpuRef's BidirectionalSequenceLstm."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import BidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy_reference.recurrent.bidirectional import (
    direction_outputs,
    linked_inputs,
    linked_weights,
)
from armpy_reference.recurrent.lstm import GATES
from armpy_reference.recurrent.lstm_float import FloatLstm
from armpy_reference.recurrent.operands import by_name, time_major, weights_of
from armpy_reference.recurrent.workload import CellWorkload

_DIRECTIONS = ("forward_", "backward_")


class BidirectionalSequenceLstmWorkload(CellWorkload[BidirectionalSequenceLstm, list[FloatLstm]]):
    """Run an LSTM over a sequence in each direction; see `FloatLstm`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the sequences and the states after them."""
        operation = self.operation
        named = by_name(operation, inputs)
        aux = named.get("aux_input")
        forward, backward = linked_inputs(
            time_major(named["input"], operation.time_major),
            None if aux is None else time_major(aux, operation.time_major),
            "forward_aux_to_output_weights" in named,
        )
        outs = direction_outputs(outputs[4:], outputs[0].shape[1], operation.time_major)
        sequences = forward, backward[::-1]
        cells = self.cell_for(inputs)
        for index, prefix in enumerate(_DIRECTIONS):
            states = outputs[2 * index : 2 * index + 2]
            states[0][...], states[1][...] = cells[index].run(
                sequences[index],
                named[f"{prefix}output_state_in"],
                named[f"{prefix}cell_state_in"],
                outs[index],
            )

    def make_cell(self, operands: Sequence[Array | None]) -> list[FloatLstm]:
        """Prepare the weights of both directions."""
        cells = []
        for prefix in _DIRECTIONS:
            weights = weights_of(self.operation, operands, prefix)
            for gate in GATES:
                name = f"input_to_{gate}_weights"
                if name in weights:
                    aux_weights = weights.get(f"aux_to_{gate}_weights")
                    weights[name] = linked_weights(weights[name], aux_weights)
            cells.append(FloatLstm(self.operation, weights))
        return cells
