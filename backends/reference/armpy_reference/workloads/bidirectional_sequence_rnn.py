"""CpuRef's BidirectionalSequenceRnn."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import BidirectionalSequenceRnn
from armpy.ops.operation import Array
from armpy_reference.recurrent.bidirectional import (
    direction_outputs,
    linked_inputs,
    linked_weights,
)
from armpy_reference.recurrent.operands import by_name, time_major, weights_of
from armpy_reference.recurrent.rnn import run_rnn
from armpy_reference.workload import ReferenceWorkload


class BidirectionalSequenceRnnWorkload(ReferenceWorkload[BidirectionalSequenceRnn]):
    """Run a recurrent network over a sequence in each direction; see `run_rnn`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the sequences and the states after them."""
        operation = self.operation
        named = by_name(operation, inputs)
        aux = named.get("aux_input")
        forward, backward = linked_inputs(
            time_major(named["input"], operation.time_major),
            None if aux is None else time_major(aux, operation.time_major),
            "forward_aux_weights" in named,
        )
        sizes = outputs[0].shape[1]
        outs = direction_outputs(outputs[2:], sizes, operation.time_major)
        for index, (prefix, sequence) in enumerate(
            (("forward_", forward), ("backward_", backward[::-1]))
        ):
            weights = weights_of(operation, inputs, prefix)
            weights["weights"] = linked_weights(weights["weights"], weights.get("aux_weights"))
            state = named[f"{prefix}hidden_state_in"]
            outputs[index][...] = run_rnn(
                weights, operation.activation, sequence, state, outs[index]
            )
